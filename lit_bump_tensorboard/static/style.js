// The look, light and dark.

export function styleText() {
  return `
:root{--ink:#1f2328;--soft:#656d76;--line:#d8dee4;--faint:#eef1f4;--page:#ffffff;--card:#ffffff;--accent:#0b63c5;--lost:#9aa3ad;--missing:#c6ccd3}
:root[data-theme=dark]{--ink:#e6e9ec;--soft:#9aa4ae;--line:#3a424b;--faint:#2a3038;--page:#1b1f24;--card:#20252b;--accent:#6cb2ff;--lost:#7b8590;--missing:#4a525b}
.lit-bump{color:var(--ink);background:var(--page);font:13px/1.4 Roboto,system-ui,-apple-system,"Segoe UI",sans-serif;min-height:100vh;box-sizing:border-box;display:grid;grid-template-columns:216px 1fr;font-variant-numeric:tabular-nums}
.lit-bump *{box-sizing:border-box}
.lit-bump aside{border-right:1px solid var(--line);padding:14px 12px;display:flex;flex-direction:column;gap:14px;min-width:0;max-height:100vh;position:sticky;top:0;overflow:auto}
.lit-bump main{padding:12px 16px 24px;min-width:0}
.lit-bump fieldset{border:0;margin:0;padding:0;display:flex;flex-direction:column;gap:6px;min-width:0}
.lit-bump legend{padding:0;margin-bottom:4px;color:var(--soft);font-size:12px}
.lit-bump label{display:flex;align-items:center;gap:6px;min-width:0}
.lit-bump label.field{flex-direction:column;align-items:stretch;gap:3px;color:var(--soft);font-size:12px}
.lit-bump select,.lit-bump input[type=text],.lit-bump button{font:inherit;color:var(--ink);background:var(--card);border:1px solid var(--line);border-radius:4px;padding:4px 8px;min-width:0}
.lit-bump button{cursor:pointer}.lit-bump button:hover{border-color:var(--accent)}
.lit-bump button[aria-pressed=true]{border-color:var(--accent);color:var(--accent)}
.lit-bump :focus-visible{outline:2px solid var(--accent);outline-offset:1px}
.lit-bump .runs{display:flex;flex-direction:column;gap:1px;overflow:visible}
.lit-bump .run{display:grid;grid-template-columns:auto 18px 1fr;gap:6px;align-items:center;padding:2px 4px;border-radius:4px}
.lit-bump .run.chosen{background:var(--faint)}
.lit-bump .run button{border:0;background:none;padding:0;text-align:left;overflow:hidden;text-overflow:ellipsis;white-space:nowrap}
.lit-bump .bar{display:flex;flex-wrap:wrap;align-items:center;gap:10px 14px;margin-bottom:10px}
.lit-bump .slider{flex:1;min-width:220px;display:flex;align-items:center;gap:10px}
.lit-bump .slider input{flex:1;min-width:80px;accent-color:var(--accent)}
.lit-bump .slider output{min-width:86px;text-align:right}
.lit-bump .grid2{display:grid;grid-template-columns:minmax(0,3fr) minmax(0,2fr);gap:16px}
.lit-bump .card{min-width:0}.lit-bump .card.whole{grid-column:1/-1}
.lit-bump .status{color:var(--soft);font-size:12px}.lit-bump .status.bad{color:#c4432b}
.lit-bump .verdict{margin:0 0 6px;color:var(--soft);overflow-wrap:anywhere}.lit-bump .verdict b{color:var(--ink);font-weight:600}
.lit-bump .empty{max-width:560px;margin:12vh auto;grid-column:1/-1}.lit-bump .empty code{display:block;background:var(--faint);padding:8px 10px;border-radius:4px;margin:6px 0 14px}
.lit-bump .map{position:relative}.lit-bump .map>*{position:absolute;left:0;top:0}
.lit-bump .tooltip{position:fixed;z-index:5;background:var(--ink);color:var(--page);padding:6px 9px;border-radius:4px;pointer-events:none;font-size:12px;max-width:360px;overflow-wrap:anywhere}
.panel{display:block;max-width:100%;overflow:visible;font:12px Roboto,system-ui,sans-serif}
.panel .grid line{stroke:var(--faint,#eef1f4)}
.panel .axis{stroke:var(--lost,#9aa3ad)}
.panel text{fill:var(--soft,#656d76)}
.panel text.title{fill:var(--ink,#1f2328);font-weight:600}
.panel .reference{stroke:var(--soft,#656d76);stroke-dasharray:4 4}
.panel .now{stroke:var(--accent,#0b63c5);stroke-opacity:.5}
.panel .curve{fill:none;stroke-width:1.3;stroke-linejoin:round}
.panel .curve.strong{stroke-width:2.4}.panel .curve.dashed{stroke-dasharray:6 4}
.panel .band{fill-opacity:.16;stroke:none}
.panel .image{fill:none;stroke:var(--soft,#656d76);stroke-opacity:.35;stroke-width:.7}
.panel .near{fill:none;stroke:var(--accent,#0b63c5);stroke-width:2}
.panel .lost{stroke:var(--lost,#9aa3ad);stroke-width:1.4;fill:none}
.panel path.peak{fill:none;stroke:#111;stroke-width:1.6}.panel circle.peak{fill:#111}
@media (max-width:1100px){.lit-bump .grid2{grid-template-columns:minmax(0,1fr)}}
`;
}

export function applyTheme() {
  // Dark where the page around us is.
  let dark = false;
  try {
    dark = window.parent !== window && window.parent.document.body.classList.contains("dark-mode");
  } catch (error) { /* another origin */ }
  if (window.parent === window) dark = window.matchMedia("(prefers-color-scheme: dark)").matches;
  const theme = dark ? "dark" : "light";
  if (document.documentElement.dataset.theme === theme) return false;
  document.documentElement.dataset.theme = theme;
  return true;
}
