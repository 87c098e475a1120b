// One stream for all tabs of a browser: it may hold six connections to a host, and a seventh tab would hang.
const ports = new Set()
let source = null
let state = 'connecting'
// What was asked for since the last news, by its part and address: tabs that show the same ask the server once.
let found = new Map()

function tell(message) {
  found = new Map()
  for (const port of ports) port.postMessage(message)
}

async function answer(port, asked) {
  const [part, url] = asked.split(' ')
  const text = found.get(asked) || fetch(url, { headers: { 'x-part': part } }).then(got => got.ok && !got.redirected && got.text()).catch(() => null)
  // A whole page is what one tab looks at, while its slider moves or beside a list.
  if (part) found.set(asked, text)
  port.postMessage({ asked, text: await text })
}

function open() {
  if (source) source.close()
  // Where this is a tab's own, only one that is looked at holds a connection.
  if (self.document?.hidden) return
  source = new EventSource('/events')
  source.addEventListener('hello', () => { state = 'live'; tell({ state, reset: true }) })
  source.addEventListener('reset', () => tell({ state, reset: true }))
  source.addEventListener('moved', event => tell({ state, moved: JSON.parse(event.data) }))
  source.onerror = () => {
    state = 'lost'
    tell({ state })
    // A server that answered with a refusal is not asked again by itself: after a restart somebody has to log in first.
    if (source.readyState === EventSource.CLOSED) setTimeout(open, 1000 + Math.random() * 1000)
  }
}

self.onconnect = event => {
  const port = event.ports[0]
  ports.add(port)
  port.onmessage = ({ data }) => data === 'bye' ? ports.delete(port) : answer(port, data)
  if (source) port.postMessage({ state, reset: state === 'live' })
  else open()
}
self.addEventListener('visibilitychange', open)
