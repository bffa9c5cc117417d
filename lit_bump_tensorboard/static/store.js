// All series that are known, kept up to date by answers that hold only what is new.

export class Store {
  constructor() {
    this.series = new Map(); // by run and tag
    this.since = 0;
    this.version = 0; // grows with every change of what can be drawn
  }

  apply(answer) {
    const present = new Set();
    let changed = false;
    let isWhole = true;
    for (const one of answer.series) {
      const key = JSON.stringify([one.run, one.tag]);
      present.add(key);
      let held = this.series.get(key);
      if (!held) {
        held = {run: one.run, tag: one.tag, probe: one.probe, points: new Map(), error: null};
        this.series.set(key, held);
        changed = true;
      }
      if (held.error !== one.error) changed = true;
      held.error = one.error;
      const valid = new Set(one.all_steps);
      for (const step of held.points.keys()) {
        if (!valid.has(step)) { // a resumed run has left this history
          held.points.delete(step);
          changed = true;
        }
      }
      for (const point of one.points) {
        held.points.set(point.step, {...point, log10Eta: answer.ladders[point.ladder]});
        changed = true;
      }
      isWhole = isWhole && held.points.size === valid.size;
    }
    for (const key of [...this.series.keys()]) {
      if (!present.has(key)) {
        this.series.delete(key);
        changed = true;
      }
    }
    this.since = isWhole ? Math.max(this.since, answer.now || 0) : 0; // what is missing is in a whole answer
    if (changed) this.version += 1;
    return changed;
  }

  runs() {
    return [...new Set([...this.series.values()].map((one) => one.run))].sort();
  }

  probes() {
    // Unchanged test images first: that is where a bump is looked for.
    const rank = (name) => (/^noise/.test(name) ? 2 : /train$|\db[\d.]+$/.test(name) ? 1 : 0);
    const names = [...new Set([...this.series.values()].map((one) => one.probe))];
    return names.sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1));
  }

  find(run, probe) {
    return [...this.series.values()].find((one) => one.run === run && one.probe === probe) || null;
  }

  steps(runs, probe) {
    const all = new Set();
    for (const run of runs) {
      const one = this.find(run, probe);
      if (one) for (const step of one.points.keys()) all.add(step);
    }
    return [...all].sort((a, b) => a - b);
  }

  errors() {
    return [...this.series.values()].filter((one) => one.error);
  }
}

export function sortedPoints(series) {
  return series ? [...series.points.values()].sort((a, b) => a.step - b.step) : [];
}

export function pointAt(series, step) {
  // The profile at a step, or the newest before it.
  let best = null;
  if (series) {
    for (const point of series.points.values()) {
      if (point.step <= step && (!best || point.step > best.step)) best = point;
    }
  }
  return best;
}
