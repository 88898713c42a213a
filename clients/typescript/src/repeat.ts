import { pause } from './pause.js'

const overloaded = new Set([429, 502, 503, 504])

/** The longest pause before a request is sent again, in milliseconds. */
const longest = 30_000

/** Sends a request, and again where that has no second effect. */
export async function fetchRepeated(send: (r: Request) => Promise<Response>, request: Request, repeats: number): Promise<Response> {
  for (let n = 0; ; n++) {
    const last = n >= repeats || !repeatable(request)
    let wait = 200 * 2 ** n * (0.5 + Math.random())
    try {
      const response = await send(last ? request : request.clone())
      if (last || !overloaded.has(response.status)) return response
      const seconds = Number(response.headers.get('Retry-After'))
      if (seconds > 0) wait = seconds * 1000
      if (wait > longest) return response
      await response.body?.cancel()
    } catch (error) {
      if (last || request.signal.aborted) throw error
    }
    await pause(wait, request.signal)
    request.signal.throwIfAborted()
  }
}

/** Reports whether a request has no further effect when the server gets it twice. */
function repeatable(r: Request): boolean {
  return r.method === 'GET' || r.method === 'HEAD' || r.headers.has('Idempotency-Key')
}
