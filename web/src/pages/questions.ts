import { api, take, type Schemas } from '../api/client'

/** A question with the run that waits for its answer. */
export interface Question {
  run: Schemas['RunRow']
  interrupt: Schemas['Interrupt']
}

/** The questions of all runs that the caller reaches, the newest run first. */
export async function waitingQuestions(signal?: AbortSignal): Promise<Question[]> {
  const list = await take(api.GET('/v1/runs', { params: { query: { status: ['paused', 'running'], limit: 200 } }, signal }))
  const out: Question[] = []
  for (const run of list.runs ?? []) for (const interrupt of run.interrupts ?? []) if (!isOutside(interrupt)) out.push({ run, interrupt })
  return out
}

/** Timers and child runs are not answered by people. */
function isOutside(i: Schemas['Interrupt']): boolean {
  return ['timer', 'child'].includes(i.kind)
}
