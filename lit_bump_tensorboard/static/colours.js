// Colours of runs, which stay the same whatever else is shown, and of steps and ratios.

const RUN_COLOURS = [
  "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f3c8d", "#80ba5a", "#a5652a", "#5f6b7a",
  "#e73f74", "#11a579",
];
const STEP_STOPS = [[253, 231, 37], [122, 209, 81], [34, 168, 132], [42, 120, 142], [65, 68, 135], [72, 30, 102]];
const BELOW = [[8, 81, 156], [107, 174, 214], [247, 247, 247]];
const ABOVE = [[247, 247, 247], [253, 174, 97], [215, 48, 39], [103, 0, 31]];

export function runColour(run) {
  let hash = 2166136261;
  for (const sign of run) hash = Math.imul(hash ^ sign.codePointAt(0), 16777619) >>> 0;
  return RUN_COLOURS[hash % RUN_COLOURS.length];
}

export function runColours(runs) {
  // The colour of a name, moved on where an earlier name in the alphabet has it already.
  const taken = new Map();
  const used = new Set();
  for (const run of runs) {
    let place = RUN_COLOURS.indexOf(runColour(run));
    for (let i = 0; i < RUN_COLOURS.length && used.has(place); i += 1) place = (place + 1) % RUN_COLOURS.length;
    used.add(place);
    if (used.size === RUN_COLOURS.length) used.clear();
    taken.set(run, RUN_COLOURS[place]);
  }
  return taken;
}

function between(stops, share) {
  const place = Math.min(Math.max(share, 0), 1) * (stops.length - 1);
  const i = Math.min(Math.floor(place), stops.length - 2);
  return stops[i].map((low, k) => Math.round(low + (stops[i + 1][k] - low) * (place - i)));
}

export function stepColour(share) {
  // Lighter on a dark page, where the late steps would drown.
  const white = document.documentElement.dataset.theme === "dark" ? 0.35 : 0;
  return `rgb(${between(STEP_STOPS, share).map((part) => Math.round(part + (255 - part) * white)).join(",")})`;
}

export function ratioColour(logRatio, low, high) {
  // White at r = 1, blue below, red above.
  return logRatio >= 0 ? between(ABOVE, logRatio / high) : between(BELOW, 1 - logRatio / low);
}
