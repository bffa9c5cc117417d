// A panel with axes: frame, grid, ticks with real numbers, labels.
import {shape} from "./dom.js";

export function panel({width, height, x, y, xTicks, yTicks, xText, yText, xLabel, yLabel, title, margin, grid: hasGrid = true}) {
  const root = shape("svg", {viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": title, class: "panel"});
  const [left, right] = [margin.left, width - margin.right];
  const [top, bottom] = [margin.top, height - margin.bottom];
  const grid = shape("g", {class: "grid"});
  const labels = shape("g", {class: "ticks"});
  for (const tick of xTicks) {
    const at = x(tick);
    if (hasGrid) grid.append(shape("line", {x1: at, x2: at, y1: top, y2: bottom}));
    labels.append(shape("text", {x: at, y: bottom + 15, "text-anchor": "middle"}, xText(tick)));
  }
  for (const tick of yTicks) {
    const at = y(tick);
    if (hasGrid) grid.append(shape("line", {x1: left, x2: right, y1: at, y2: at}));
    labels.append(shape("text", {x: left - 6, y: at + 4, "text-anchor": "end"}, yText(tick)));
  }
  root.append(grid, labels);
  root.append(shape("line", {class: "axis", x1: left, x2: right, y1: bottom, y2: bottom}));
  root.append(shape("line", {class: "axis", x1: left, x2: left, y1: top, y2: bottom}));
  if (xLabel) root.append(shape("text", {class: "label", x: (left + right) / 2, y: height - 6, "text-anchor": "middle"}, xLabel));
  const turn = `translate(13 ${(top + bottom) / 2}) rotate(-90)`;
  if (yLabel) root.append(shape("text", {class: "label", transform: turn, "text-anchor": "middle"}, yLabel));
  if (title) root.append(fittedTitle(title, left, right - left));
  return root;
}

function fittedTitle(title, x, room) {
  // Shortened in its middle, where a beginning and an end still tell it apart; whole under the pointer.
  const signs = [...title];
  const most = Math.max(Math.floor(room / 7.2), 8);
  const half = Math.floor((most - 1) / 2);
  const text = signs.length <= most ? title : `${signs.slice(0, half).join("")}…${signs.slice(-half).join("")}`;
  return shape("text", {class: "title", x, y: 16}, shape("title", {}, title), text);
}

export function pointerOn(root, event, width, height) {
  // Where the pointer is, in the units of a panel that may be shown smaller.
  const box = root.getBoundingClientRect();
  return [((event.clientX - box.left) / box.width) * width, ((event.clientY - box.top) / box.height) * height];
}

export function limitsOf(values, floor) {
  // Limits that hold all values and a floor, so that a flat profile looks flat.
  let [low, high] = floor;
  for (const value of values) {
    if (value !== null && Number.isFinite(value)) {
      low = Math.min(low, value);
      high = Math.max(high, value);
    }
  }
  const margin = 0.04 * (high - low);
  return [low - margin, high + margin];
}
