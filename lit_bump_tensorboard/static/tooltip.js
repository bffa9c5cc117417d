// Numbers beside the pointer.
import {element, emptied} from "./dom.js";

export class Tooltip {
  constructor(root) {
    this.node = element("div", {class: "tooltip", role: "status"});
    this.node.hidden = true;
    root.append(this.node);
  }

  show(event, lines) {
    emptied(this.node);
    for (const line of lines) this.node.append(element("div", {}, line));
    this.node.hidden = false;
    const box = this.node.getBoundingClientRect();
    const left = Math.min(event.clientX + 14, window.innerWidth - box.width - 8);
    const top = Math.min(event.clientY + 14, window.innerHeight - box.height - 8);
    this.node.style.left = `${Math.max(left, 4)}px`;
    this.node.style.top = `${Math.max(top, 4)}px`;
  }

  hide() {
    this.node.hidden = true;
  }
}
