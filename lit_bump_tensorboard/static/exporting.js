// What is seen, as files: all panels as one SVG or PNG, and the numbers as CSV.
import {swatch} from "./controls.js";
import {element, shape} from "./dom.js";
import {styleText} from "./style.js";

const PIXELS = 2; // of a PNG for one of the screen
const LEGEND_ROW = 18;

function save(blob, name) {
  const link = element("a", {href: URL.createObjectURL(blob), download: name});
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

function composed({plots, title, legend}) {
  // Every panel and picture at its place, under a title; below them the runs with their colours.
  const around = plots.getBoundingClientRect();
  const head = 28;
  const columns = Math.max(Math.floor(around.width / 260), 1);
  const height = head + around.height + Math.ceil(legend.length / columns) * LEGEND_ROW + 12;
  const look = getComputedStyle(document.querySelector(".lit-bump"));
  const root = shape("svg", {
    xmlns: "http://www.w3.org/2000/svg", width: around.width, height, viewBox: `0 0 ${around.width} ${height}`,
    "data-theme": document.documentElement.dataset.theme, class: "panel", style: `color:${look.color}`,
  });
  root.append(shape("style", {}, styleText()),
    shape("rect", {width: around.width, height, fill: look.backgroundColor}),
    shape("text", {x: 8, y: 18}, title));
  for (const one of plots.querySelectorAll("canvas, svg")) {
    const box = one.getBoundingClientRect();
    const place = {x: box.left - around.left, y: box.top - around.top + head, width: box.width, height: box.height};
    if (one.tagName === "CANVAS") root.append(shape("image", {...place, href: one.toDataURL()}));
    else {
      const copy = one.cloneNode(true);
      for (const [name, value] of Object.entries(place)) copy.setAttribute(name, value);
      root.append(copy);
    }
  }
  legend.forEach(({run, look: ofRun}, i) => {
    const [x, y] = [8 + (i % columns) * 260, head + around.height + Math.floor(i / columns) * LEGEND_ROW];
    const line = swatch(ofRun);
    line.setAttribute("x", x);
    line.setAttribute("y", y);
    const name = [...run].length > 36 ? `…${[...run].slice(-35).join("")}` : run;
    root.append(line, shape("text", {x: x + 24, y: y + 10}, name));
  });
  return {text: new XMLSerializer().serializeToString(root), width: around.width, height};
}

export function saveSvg(view, name) {
  save(new Blob([composed(view).text], {type: "image/svg+xml"}), `${name}.svg`);
}

export function savePng(view, name) {
  const {text, width, height} = composed(view);
  const image = new Image();
  image.addEventListener("load", () => {
    const canvas = element("canvas", {width: width * PIXELS, height: height * PIXELS});
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    canvas.toBlob((blob) => blob && save(blob, `${name}.png`));
  });
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
}

function cell(value) {
  const text = value === null || value === undefined ? "" : String(value);
  const safe = /^[=+@\t\r]/.test(text) || (/^-/.test(text) && !Number.isFinite(Number(text))) ? `'${text}` : text; // no formulas
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

export function saveCsv(rows, name) {
  save(new Blob([`${rows.map((row) => row.map(cell).join(",")).join("\n")}\n`], {type: "text/csv"}), `${name}.csv`);
}

export function profileRows({curves, run, probe, detail, images}) {
  // One row a curve and rung; bands, parts and single images where they are known, which is for the chosen curve.
  const known = ["low", "high", "q25", "q75", "response", "prediction"];
  const nImages = detail && images ? detail.images.length : 0;
  const head = ["run", "probe", "step", "log10_eta", "median_ratio", "n_kept", ...known,
    ...Array.from({length: nImages}, (_, i) => `ratio_of_image_${i}`)];
  return [head, ...curves.flatMap((curve) => curve.median.map((value, i) => {
    const more = detail && curve.strong && curve.step === detail.step ? detail : null;
    return [curve.name || run, probe, curve.step, curve.log10Eta[i], value, curve.n_kept[i],
      ...known.map((row) => (more && more.rows[row] ? more.rows[row][i] : null)),
      ...Array.from({length: nImages}, (_, k) => (more ? more.images[k][i] : null))];
  }))];
}

export function growthRows(runs, probe) {
  // One row a run and step.
  return [["run", "probe", "step", "verdict", "max_ratio", "log10_eta_of_peak", "width_decades"],
    ...runs.flatMap(({run, points}) => points.map((point) =>
      [run, probe, point.step, point.verdict, point.height, point.log10_peak_eta, point.width]))];
}
