// Scales, ticks and numbers.

export function linearScale([low, high], [from, to]) {
  const span = high - low || 1;
  const scale = (value) => from + ((value - low) / span) * (to - from);
  scale.invert = (pixel) => low + ((pixel - from) / (to - from)) * span;
  scale.domain = [low, high];
  return scale;
}

export function niceTicks([low, high], count) {
  const raw = (high - low) / Math.max(count, 1) || 1;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((k) => k * power).find((k) => k >= raw * 0.999) || 10 * power;
  const ticks = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k += 1) ticks.push(k * step);
  return ticks;
}

export function decadeTicks([low, high]) {
  // Whole decades of a base-10 logarithm; 1-2-5 where fewer than three fit.
  const whole = [];
  for (let k = Math.ceil(low - 1e-9); k <= high + 1e-9; k += 1) whole.push(k);
  if (whole.length >= 3) return whole;
  const fine = [];
  for (let k = Math.floor(low); k <= Math.ceil(high); k += 1) {
    for (const m of [1, 2, 5]) {
      const value = k + Math.log10(m);
      if (value >= low - 1e-9 && value <= high + 1e-9) fine.push(value);
    }
  }
  if (fine.length >= 2) return fine;
  return niceTicks([10 ** low, 10 ** high], 4).filter((value) => value > 0).map((value) => Math.log10(value));
}

const RAISED = {"-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹"};

export function powerText(exponent) {
  const nearest = Math.round(exponent);
  if (Math.abs(exponent - nearest) > 1e-6) return numberText(10 ** exponent);
  if (nearest >= -2 && nearest <= 3) return numberText(10 ** nearest);
  return `10${[...String(nearest)].map((sign) => RAISED[sign]).join("")}`;
}

export function numberText(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e5 || size < 1e-3) return value.toExponential(2);
  return String(Number(value.toPrecision(3)));
}

export function stepPlace(step) {
  return Math.log10(1 + step);
}

export function stepTicks(last) {
  const ticks = [0];
  for (let value = 1; value <= Math.max(last, 1); value *= 10) ticks.push(value);
  const room = stepPlace(Math.max(last, 1));
  return ticks.filter((step, i) => i === 0 || stepPlace(step) > 0.12 * room);
}

export function stepText(step) {
  return step.toLocaleString("en-US");
}
