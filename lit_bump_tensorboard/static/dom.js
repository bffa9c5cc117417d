// Elements made by hand: names and numbers go in as text, never as markup.

const SVG = "http://www.w3.org/2000/svg";

export function element(name, attributes = {}, ...children) {
  return filled(document.createElement(name), attributes, children);
}

export function shape(name, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, name), attributes, children);
}

function filled(node, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value === true ? "" : String(value));
  }
  for (const child of children.flat()) {
    if (child !== null && child !== undefined) node.append(child);
  }
  return node;
}

export function emptied(node) {
  node.replaceChildren();
  return node;
}

export function pathOf(points) {
  // A line through points, broken where one is missing.
  let text = "";
  let pen = "M";
  for (const point of points) {
    if (point === null) {
      pen = "M";
    } else {
      text += `${pen}${point[0].toFixed(1)},${point[1].toFixed(1)}`;
      pen = "L";
    }
  }
  return text;
}

export function bandOf(upper, lower) {
  // The area between two lines, broken where either is missing.
  const parts = [];
  let run = [];
  for (let i = 0; i <= upper.length; i += 1) {
    if (i < upper.length && upper[i] && lower[i]) run.push(i);
    else {
      if (run.length > 1) {
        const there = run.map((k) => upper[k]);
        const back = run.map((k) => lower[k]).reverse();
        parts.push(`${pathOf([...there, ...back])}Z`);
      }
      run = [];
    }
  }
  return parts.join("");
}

export function nearestSpot(spots, [x, y], reach = 16) {
  // The spot, {place: [x, y], ...}, that is nearest to the pointer; null where none is near.
  let best = null;
  let least = reach * reach;
  for (const spot of spots) {
    const distance = (spot.place[0] - x) ** 2 + (spot.place[1] - y) ** 2;
    if (distance <= least) [best, least] = [spot, distance];
  }
  return best;
}

export function markSpot(mark, spot) {
  mark.setAttribute("visibility", spot ? "visible" : "hidden");
  if (!spot) return;
  mark.setAttribute("cx", spot.place[0]);
  mark.setAttribute("cy", spot.place[1]);
}
