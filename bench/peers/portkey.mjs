// Preloaded before @portkey-ai/gateway 1.15.2 (bench/gateway), which appends to the headers of fetched
// responses. Node 20.20 refuses that, so each response is wrapped in one with headers of its own.
const fetched = globalThis.fetch;
globalThis.fetch = async (...args) => {
  const r = await fetched(...args);
  return new Response(r.body, { status: r.status, statusText: r.statusText, headers: new Headers(r.headers) });
};
