// Where the numbers come from: the plugin's routes, or a page that holds them all.

export function fetched(base) {
  async function get(path) {
    const answer = await fetch(base + path, {cache: "no-store"});
    if (!answer.ok) throw new Error(`the server answers ${answer.status}`);
    return answer.json();
  }
  return {
    changes: (since) => get(`changes?since=${since}`),
    detail: (run, tag, step) =>
      get(`detail?run=${encodeURIComponent(run)}&tag=${encodeURIComponent(tag)}&step=${step}`),
  };
}

export function embedded(data) {
  return {
    changes: async () => data.changes,
    detail: async (run, tag, step) => {
      const found = data.details.find((one) => one.run === run && one.tag === tag && one.step === step);
      if (!found) throw new Error("there is no such profile");
      return found;
    },
  };
}
