// What is seen, as files: SVG, PNG and the numbers as CSV.
import {element} from "./dom.js";
import {styleText} from "./style.js";

function save(blob, name) {
  const link = element("a", {href: URL.createObjectURL(blob), download: name});
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

function standalone(svg) {
  const copy = svg.cloneNode(true);
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  const look = document.createElementNS("http://www.w3.org/2000/svg", "style");
  const colours = getComputedStyle(svg);
  look.textContent = styleText() + `svg{color:${colours.color};background:${getComputedStyle(document.body).backgroundColor}}`;
  copy.setAttribute("class", `${copy.getAttribute("class") || ""} ${document.documentElement.dataset.theme || ""}`);
  copy.prepend(look);
  return new XMLSerializer().serializeToString(copy);
}

export function saveSvg(svg, name) {
  save(new Blob([standalone(svg)], {type: "image/svg+xml"}), `${name}.svg`);
}

export function savePng(svg, name) {
  const image = new Image();
  const scale = 2;
  image.addEventListener("load", () => {
    const canvas = element("canvas", {width: svg.clientWidth * scale, height: svg.clientHeight * scale});
    const pen = canvas.getContext("2d");
    pen.fillStyle = getComputedStyle(document.body).backgroundColor;
    pen.fillRect(0, 0, canvas.width, canvas.height);
    pen.drawImage(image, 0, 0, canvas.width, canvas.height);
    canvas.toBlob((blob) => blob && save(blob, `${name}.png`));
  });
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(standalone(svg))}`;
}

function cell(value) {
  const text = value === null || value === undefined ? "" : String(value);
  const safe = /^[=+@\t\r]/.test(text) || (/^-/.test(text) && !Number.isFinite(Number(text))) ? `'${text}` : text; // no formulas
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

export function saveCsv(rows, name) {
  save(new Blob([`${rows.map((row) => row.map(cell).join(",")).join("\n")}\n`], {type: "text/csv"}), `${name}.csv`);
}
