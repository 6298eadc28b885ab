/** The name of a function without its namespaces and parameters, from its mangled name. */
export function plainName(mangled: string): string {
  // Functions that only one file sees have its name before theirs.
  const symbol = mangled.replace(/^.*[:;](?=_Z)/s, "");
  const head = /^_Z(N[rVKRO]*)?(?:L|St)?/.exec(symbol);
  if (!head) {
    return symbol;
  }
  const isNested = head[1] !== undefined;
  let rest = symbol.slice(head[0].length);
  let name: string | undefined;
  for (;;) {
    const length = /^L?(\d+)/.exec(rest);
    if (!length) {
      break;
    }
    const start = length[0].length;
    const end = start + Number(length[1]);
    if (end > rest.length) {
      return symbol;
    }
    name = rest.slice(start, end);
    rest = rest.slice(end);
    if (!isNested) {
      break;
    }
  }
  if (name === undefined) {
    return symbol;
  }
  return rest.startsWith("I") ? `${name}<…>` : name;
}
