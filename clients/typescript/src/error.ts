import type { components } from './schema.js'

type Problem = components['schemas']['Problem']

/** An answer that is not a success, or none. The codes are stable; docs/errors.md lists them. */
export class WeirError extends Error {
  /** That of HTTP; 0 if the server was not reached. */
  readonly status: number
  /** Empty if the server did not answer, or a proxy answered instead. */
  readonly code: string
  readonly hint: string
  readonly problem: Partial<Problem>

  constructor(status: number, problem: Partial<Problem>, options?: ErrorOptions) {
    super(problem.detail ?? `status ${status}`, options)
    this.name = 'WeirError'
    this.status = status
    this.code = problem.code ?? ''
    this.hint = problem.hint ?? ''
    this.problem = problem
  }

  /** The server was not reached. What the request did is not known: the answer may be what was lost. */
  get offline(): boolean {
    return this.status === 0
  }

  /** Returns the error of a request that got no answer. */
  static unreached(cause: unknown): WeirError {
    return new WeirError(0, { detail: `the server was not reached: ${cause instanceof Error ? cause.message : String(cause)}` }, { cause })
  }

  /** Reads the error that a response contains. */
  static async of(response: Response): Promise<WeirError> {
    const text = await response.text().catch(() => '')
    try {
      const problem: unknown = JSON.parse(text)
      if (typeof problem === 'object' && problem !== null) return new WeirError(response.status, problem)
    } catch {
      // a proxy may answer with a page
    }
    return new WeirError(response.status, { detail: text.slice(0, 500) || response.statusText })
  }
}
