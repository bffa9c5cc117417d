// Response profiles: ratio over eta, all steps of one run or one step of several runs.
import {limitsOf, panel, pointerOn} from "./axes.js";
import {stepColour} from "./colours.js";
import {bandOf, markSpot, nearestSpot, pathOf, shape} from "./dom.js";
import {decadeTicks, linearScale, niceTicks, numberText, powerText, stepPlace} from "./scales.js";

const PROFILE_MARGIN = {left: 58, right: 14, top: 26, bottom: 40};

export function profilePlot({curves, detail, scale, band, images, width, height, title, onNear}) {
  // curves: {points: [{log10Eta, median, n_kept, step}], colour, label, strong}; the last strong one is the newest.
  const isLog = scale === "log";
  const onScale = (ratio) => (ratio === null || (isLog && ratio <= 0) ? null : isLog ? Math.log10(ratio) : ratio);
  const etas = curves.flatMap((curve) => curve.log10Eta);
  const shown = curves.flatMap((curve) => curve.median.map(onScale));
  const extra = detail && detail.low ? [...detail.low, ...detail.high].map(onScale) : [];
  if (detail && images) for (const row of detail.images) extra.push(...row.map(onScale));
  const xLimits = etas.length ? [Math.min(...etas) - 0.05, Math.max(...etas) + 0.05] : [-3, 1];
  const yLimits = limitsOf([...shown, ...extra], isLog ? [Math.log10(0.5), Math.log10(2)] : [0, 2]);
  const x = linearScale(xLimits, [PROFILE_MARGIN.left, width - PROFILE_MARGIN.right]);
  const y = linearScale(yLimits, [height - PROFILE_MARGIN.bottom, PROFILE_MARGIN.top]);
  const root = panel({
    width, height, x, y, margin: PROFILE_MARGIN, title,
    xTicks: decadeTicks(xLimits), xText: powerText, xLabel: "perturbation size η (L2, pixels in [0, 1])",
    yTicks: isLog ? decadeTicks(yLimits) : niceTicks(yLimits, 6),
    yText: isLog ? powerText : numberText, yLabel: "ratio r",
  });
  root.append(shape("line", {
    class: "reference", x1: PROFILE_MARGIN.left, x2: width - PROFILE_MARGIN.right, y1: y(onScale(1)), y2: y(onScale(1)),
  }));
  const at = (log10Eta, values) => values.map((value, i) => {
    const place = onScale(value);
    return place === null ? null : [x(log10Eta[i]), y(place)];
  });
  const foot = height - PROFILE_MARGIN.bottom;
  if (detail && band !== "none") {
    const colour = curves.length ? curves[curves.length - 1].colour : "#888";
    root.append(shape("path", {
      class: "band", d: bandOf(at(detail.log10Eta, detail.high), at(detail.log10Eta, detail.low)), fill: colour,
    }));
  }
  if (detail && images) {
    for (const row of detail.images) root.append(shape("path", {class: "image", d: pathOf(at(detail.log10Eta, row))}));
  }
  const spots = [];
  for (const curve of curves) {
    const places = at(curve.log10Eta, curve.median);
    root.append(shape("path", {
      class: curve.strong ? "curve strong" : "curve", d: pathOf(places), stroke: curve.colour, "stroke-dasharray": curve.dash,
    }));
    places.forEach((place, i) => {
      if (place !== null) spots.push({place, curve, i});
      if (!curve.strong) return;
      if (place === null) {
        const left = x(curve.log10Eta[i]);
        root.append(shape("path", {class: "lost", d: `M${left - 3},${foot - 9}l6,6m0,-6l-6,6`}));
        return;
      }
      root.append(shape("circle", {class: "dot", cx: place[0], cy: place[1], r: 3.2, fill: curve.colour}));
    });
  }
  const near = shape("circle", {class: "near", r: 5, visibility: "hidden"});
  root.append(near);
  root.addEventListener("pointermove", (event) => {
    const found = nearestSpot(spots, pointerOn(root, event, width, height));
    markSpot(near, found);
    onNear(event, found && [
      found.curve.label, `η ${numberText(10 ** found.curve.log10Eta[found.i])}`,
      `median r ${numberText(found.curve.median[found.i])}`, ...bandLine(found, detail, band),
      `${found.curve.n_kept[found.i]} images kept`,
    ]);
  });
  root.addEventListener("pointerleave", (event) => {
    markSpot(near, null);
    onNear(event, null);
  });
  return root;
}

function bandLine({curve, i}, detail, band) {
  // The band belongs to the newest curve alone.
  if (!curve.strong || !detail || band === "none") return [];
  const name = band === "quartiles" ? "quartiles of images" : "90 % of the median";
  return [`${name} ${numberText(detail.low[i])} to ${numberText(detail.high[i])}`];
}

export function formationCurves(points, step, last) {
  // All profiles up to a step, coloured by its logarithm; the newest in the colour of text.
  const room = stepPlace(Math.max(last, 1));
  const upTo = points.filter((point) => point.step <= step);
  return upTo.map((point, i) => ({
    ...point, label: `step ${point.step.toLocaleString("en-US")}`, strong: i === upTo.length - 1,
    colour: i === upTo.length - 1 ? "currentColor" : stepColour(stepPlace(point.step) / room),
  }));
}
