// Shared worker: one event stream for all tabs. Browsers allow six connections per host, so a seventh tab would hang.
const ports = new Set()
let source
let state = 'connecting'
let silence
// Responses since the last event, by URL: tabs that show the same page share one request.
let found = new Map()

function tell(message) {
  found = new Map()
  for (const port of ports) port.postMessage({ state, ...message })
}

async function answer([url, isKept], port) {
  // Time out: a lost connection reports no error.
  const text = isKept && found.get(url) || fetch(url, { signal: AbortSignal.timeout(20000) }).then(got => got.ok && !got.redirected && got.text()).catch(() => null)
  // Don't cache pages that one tab alone shows: slider positions and previews.
  if (isKept) found.set(url, text)
  port.postMessage(await text)
  if (!await text) found.delete(url)
}

// The server sends a greeting and then a heartbeat every 15 seconds. Silence means a lost connection, such as after a laptop slept.
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
  // Without a shared worker, only a visible tab holds a connection.
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
  // A request carries a reply port; a goodbye carries none.
  port.onmessage = ({ data, ports: [back] }) => back ? answer(data, back) : ports.delete(port)
  if (source) port.postMessage({ state, reset: state === 'live' })
  else open()
}
self.addEventListener('visibilitychange', open)
self.addEventListener('online', open)
