// Colours of runs, which stay the same whatever else is shown, and of steps and ratios.

const RUN_COLOURS = [
  "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f3c8d", "#80ba5a", "#a5652a", "#5f6b7a",
  "#e73f74", "#11a579",
];
const STEP_STOPS = [[253, 231, 37], [122, 209, 81], [34, 168, 132], [42, 120, 142], [65, 68, 135], [72, 30, 102]];
const BELOW = [[8, 81, 156], [107, 174, 214], [247, 247, 247]];
const ABOVE = [[247, 247, 247], [253, 174, 97], [215, 48, 39], [103, 0, 31]];

const RUN_DASHES = [null, "7 3", "2 2.5", "10 3 2 3"]; // once every colour is taken, lines differ by their strokes

export class RunLooks {
  // Colour and stroke of each run: that of its name, or the next free one; kept while the page is open.
  constructor() {
    this.looks = new Map();
    this.taken = new Set();
  }

  of(runs) {
    for (const run of runs) if (!this.looks.has(run)) this.looks.set(run, this.free(run));
    return this.looks;
  }

  free(run) {
    let hash = 2166136261;
    for (const sign of run) hash = Math.imul(hash ^ sign.codePointAt(0), 16777619) >>> 0;
    const n = RUN_COLOURS.length;
    for (const dash of RUN_DASHES) {
      for (let i = 0; i < n; i += 1) {
        const colour = RUN_COLOURS[(hash + i) % n];
        if (this.taken.has(`${colour} ${dash}`)) continue;
        this.taken.add(`${colour} ${dash}`);
        return {colour, dash};
      }
    }
    return {colour: RUN_COLOURS[hash % n], dash: null}; // more runs than looks
  }
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
