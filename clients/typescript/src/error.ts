import type { components } from './schema.js'

type Problem = components['schemas']['Problem']

/** An answer that is not a success. The codes are stable; docs/errors.md lists them. */
export class WeirError extends Error {
  readonly status: number
  /** Empty if a proxy answered, and not the server. */
  readonly code: string
  readonly hint: string
  readonly problem: Partial<Problem>

  constructor(status: number, problem: Partial<Problem>) {
    super(problem.detail ?? `status ${status}`)
    this.name = 'WeirError'
    this.status = status
    this.code = problem.code ?? ''
    this.hint = problem.hint ?? ''
    this.problem = problem
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
