export { createWeir, newKey, take, type Options, type Weir } from './client.js'
export { WeirError } from './error.js'
export type { Connection, RunsChange, RunsFilter, StreamEvent, StreamItem, StreamOptions } from './stream.js'
export type { components, operations, paths } from './schema.js'
