// The formation as a map: eta across, step upwards, colour for the ratio; the same limits for all runs.
import {panel, pointerOn} from "./axes.js";
import {ratioColour} from "./colours.js";
import {element, pathOf, shape} from "./dom.js";
import {decadeTicks, linearScale, numberText, powerText, stepPlace, stepText, stepTicks} from "./scales.js";

const MAP_MARGIN = {left: 58, right: 78, top: 26, bottom: 40};
const COLOUR_FLOOR = 0.3; // decades of r: below, noise would look like a bump

export function mapLimits(allPoints) {
  let [low, high] = [-COLOUR_FLOOR, COLOUR_FLOOR];
  for (const point of allPoints) {
    for (const ratio of point.median) {
      if (ratio === null || ratio <= 0) continue;
      const value = Math.log10(ratio);
      low = Math.min(low, value);
      high = Math.max(high, value);
    }
  }
  return [Math.max(low, -2), high];
}

export function mapPlot({points, limits, step, last, width, height, title, missing, onNear}) {
  // onNear(event, lines) says what is under the pointer, null for nothing
  const root = element("div", {class: "map"});
  const etas = points.flatMap((point) => point.log10Eta);
  const xLimits = etas.length ? [Math.min(...etas), Math.max(...etas)] : [-3, 1];
  const half = points.length && points[0].log10Eta.length > 1 ? (points[0].log10Eta[1] - points[0].log10Eta[0]) / 2 : 0.1;
  const room = Math.max(stepPlace(Math.max(last, 1)), 0.3);
  const x = linearScale([xLimits[0] - half, xLimits[1] + half], [MAP_MARGIN.left, width - MAP_MARGIN.right]);
  const y = linearScale([0, room], [height - MAP_MARGIN.bottom, MAP_MARGIN.top]);
  const frame = panel({
    width, height, x, y, margin: MAP_MARGIN, title, grid: false, xTicks: decadeTicks(xLimits), xText: powerText,
    xLabel: "perturbation size η", yTicks: stepTicks(last).map(stepPlace),
    yText: (place) => stepText(Math.round(10 ** place - 1)), yLabel: "step (log)",
  });
  const ratio = window.devicePixelRatio || 1;
  const canvas = element("canvas", {width: Math.round(width * ratio), height: Math.round(height * ratio)});
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const pen = canvas.getContext("2d");
  pen.scale(ratio, ratio);
  const bands = [];
  points.forEach((point, i) => {
    const from = i === 0 ? 0 : (stepPlace(points[i - 1].step) + stepPlace(point.step)) / 2;
    const to = i === points.length - 1 ? stepPlace(point.step) : (stepPlace(point.step) + stepPlace(points[i + 1].step)) / 2;
    const top = i === points.length - 1 ? Math.max(to, from + 0.02 * room) : to;
    bands.push({point, from, top});
    pen.globalAlpha = point.step <= step ? 1 : 0.35;
    point.median.forEach((value, k) => {
      const [left, right] = [x(point.log10Eta[k] - half), x(point.log10Eta[k] + half)];
      const known = value !== null && value > 0;
      pen.fillStyle = known ? `rgb(${ratioColour(Math.log10(value), limits[0], limits[1]).join(",")})` : missing;
      pen.fillRect(left, y(top), right - left + 0.6, y(from) - y(top) + 0.6);
    });
  });
  pen.globalAlpha = 1;
  const [barLeft, barTop, barHeight] = [width - MAP_MARGIN.right + 16, MAP_MARGIN.top, height - MAP_MARGIN.top - MAP_MARGIN.bottom];
  for (let i = 0; i < barHeight; i += 1) {
    const value = limits[1] - (i / barHeight) * (limits[1] - limits[0]);
    pen.fillStyle = `rgb(${ratioColour(value, limits[0], limits[1]).join(",")})`;
    pen.fillRect(barLeft, barTop + i, 12, 1.5);
  }
  const bar = linearScale(limits, [barTop + barHeight, barTop]);
  const marks = [0]; // r = 1, the ends, and what fits between
  for (const value of [limits[1], limits[0], ...decadeTicks(limits)]) {
    if (marks.every((other) => Math.abs(bar(value) - bar(other)) > 18)) marks.push(value);
  }
  for (const value of marks) {
    frame.append(shape("text", {class: "tick", x: barLeft + 17, y: bar(value) + 4}, numberText(10 ** value)));
  }
  frame.append(shape("text", {class: "tick", x: barLeft, y: barTop - 8}, "median r"));
  const peaks = points.map((point) => (point.verdict === "bump" && point.log10_peak_eta !== null
    ? [x(point.log10_peak_eta), y(stepPlace(point.step))] : null));
  frame.append(shape("path", {class: "peak", d: pathOf(peaks)}));
  peaks.forEach((place, i) => {
    if (place && !peaks[i - 1] && !peaks[i + 1]) frame.append(shape("circle", {class: "peak", cx: place[0], cy: place[1], r: 2}));
  });
  frame.addEventListener("pointermove", (event) => {
    const [left, top] = pointerOn(frame, event, width, height);
    const [place, level] = [x.invert(left), y.invert(top)];
    const band = bands.find((one) => level >= one.from && level <= one.top);
    const k = band ? band.point.log10Eta.findIndex((one) => Math.abs(one - place) <= half) : -1;
    onNear(event, k < 0 ? null : [
      `step ${stepText(band.point.step)}`, `η ${numberText(10 ** band.point.log10Eta[k])}`,
      `median r ${numberText(band.point.median[k])}`, `${band.point.n_kept[k]} images kept`,
    ]);
  });
  frame.addEventListener("pointerleave", (event) => onNear(event, null));
  root.style.height = `${height}px`;
  root.append(canvas, frame);
  return root;
}
