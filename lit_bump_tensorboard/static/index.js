// The entry that TensorBoard calls: the page, fed by the plugin's routes.
import {boot} from "./boot.js";
import {fetched} from "./source.js";

export function render() {
  boot(document.body, fetched("./"), {live: true});
}
