// One stream for all tabs of a browser: it may hold six connections to a host, and a seventh tab would hang.
const ports = new Set()
let source
let state = 'connecting'
let silence
// What was asked for since the last news, by its address: tabs that show the same ask the server once.
let found = new Map()

function tell(message) {
  found = new Map()
  for (const port of ports) port.postMessage({ state, ...message })
}

async function answer([url, isKept], port) {
  // Nobody waits for ever: what is asked for may be lost on its way without a word.
  const text = isKept && found.get(url) || fetch(url, { signal: AbortSignal.timeout(20000) }).then(got => got.ok && !got.redirected && got.text()).catch(() => null)
  // What one tab looks at, while its slider moves or beside a list, is not kept for others.
  if (isKept) found.set(url, text)
  port.postMessage(await text)
  if (!await text) found.delete(url)
}

// The server greets at once, and is heard of every 15 seconds. Where it is not, the connection was lost without a word, as by a
// laptop that slept; a new one may be such an old one, which the browser had kept.
function listen(ms) {
  clearTimeout(silence)
  silence = setTimeout(lose, ms)
}

function lose() {
  source.close()
  state = 'lost'
  tell()
  setTimeout(open, 1000 + Math.random() * 1000)
}

function open() {
  clearTimeout(silence)
  source?.close()
  // Where this is a tab's own, only one that is looked at holds a connection.
  if (self.document?.hidden) return
  source = new EventSource('/events')
  source.onerror = lose
  source.onmessage = ({ data }) => {
    listen(35000)
    state = 'live'
    if (data !== '{}') tell(JSON.parse(data))
  }
  listen(10000)
}

self.onconnect = event => {
  const port = event.ports[0]
  ports.add(port)
  // A question brings the port for its answer; whoever leaves brings none.
  port.onmessage = ({ data, ports: [back] }) => back ? answer(data, back) : ports.delete(port)
  if (source) port.postMessage({ state, reset: state === 'live' })
  else open()
}
self.addEventListener('visibilitychange', open)
self.addEventListener('online', open)
