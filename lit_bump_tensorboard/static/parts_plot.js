// Response and prediction apart: why a peak moved.
import {limitsOf, panel, pointerOn} from "./axes.js";
import {markSpot, nearestSpot, pathOf, shape} from "./dom.js";
import {decadeTicks, linearScale, numberText, powerText} from "./scales.js";

const PARTS_MARGIN = {left: 58, right: 14, top: 26, bottom: 40};

export function partsPlot({detail, colour, width, height, title, onNear}) {
  const logged = (row) => row.map((value) => (value === null || value <= 0 ? null : Math.log10(value)));
  const response = logged(detail.rows.response || []);
  const prediction = logged(detail.rows.prediction || []);
  const etas = detail.log10_eta;
  const xLimits = [Math.min(...etas) - 0.05, Math.max(...etas) + 0.05];
  const known = [...response, ...prediction].filter((value) => value !== null);
  const yLimits = limitsOf(known, known.length ? [known[0], known[0] + 0.1] : [0, 1]);
  const x = linearScale(xLimits, [PARTS_MARGIN.left, width - PARTS_MARGIN.right]);
  const y = linearScale(yLimits, [height - PARTS_MARGIN.bottom, PARTS_MARGIN.top]);
  const ticks = decadeTicks(yLimits);
  const root = panel({
    width, height, x, y, margin: PARTS_MARGIN, title, xTicks: decadeTicks(xLimits), xText: powerText,
    xLabel: "perturbation size η", yTicks: ticks.filter((_, i) => i % Math.ceil(ticks.length / 7) === 0), yText: powerText,
    yLabel: "squared displacement",
  });
  const at = (row) => row.map((value, i) => (value === null ? null : [x(etas[i]), y(value)]));
  root.append(shape("path", {class: "curve strong", d: pathOf(at(response)), stroke: colour}));
  root.append(shape("path", {class: "curve strong dashed", d: pathOf(at(prediction)), stroke: colour}));
  const corner = PARTS_MARGIN.left + 10;
  root.append(shape("text", {class: "tick", x: corner, y: PARTS_MARGIN.top + 14}, "— median response"));
  root.append(shape("text", {class: "tick", x: corner, y: PARTS_MARGIN.top + 30}, "- - predicted, η² tr G / d"));
  const near = shape("circle", {class: "near", r: 5, visibility: "hidden"});
  root.append(near);
  const spots = [[response, "response"], [prediction, "predicted"]].flatMap(([row, name]) => at(row)
    .map((place, i) => place && {place, lines: [`η ${numberText(10 ** etas[i])}`, `${name} ${numberText(10 ** row[i])}`]})
    .filter(Boolean));
  root.addEventListener("pointermove", (event) => {
    const found = nearestSpot(spots, pointerOn(root, event, width, height));
    markSpot(near, found);
    onNear(event, found && found.lines);
  });
  root.addEventListener("pointerleave", (event) => {
    markSpot(near, null);
    onNear(event, null);
  });
  return root;
}
