/** All texts of the page. */
export const t = {
  app: 'Weir',
  nav: { codes: 'Error codes',
    runs: 'Runs', inbox: 'Inbox', chat: 'Chat', sessions: 'Sessions', flows: 'Flows', memory: 'Memory', usage: 'Usage',
    skip: 'Skip to the content', theme: 'Colour scheme', api: 'API', signOut: 'Sign out', main: 'Main',
  },
  login: {
    title: 'Sign in', intro: 'This server requires a token. An administrator makes one with this command:',
    token: 'Token', keep: 'Keep me signed in on this device', submit: 'Sign in', bad: 'The server does not accept this token.',
  },
  state: {
    loading: 'Loading', retry: 'Try again', offline: 'The server does not answer', offlineHint: 'The page connects again by itself.',
    failed: 'This could not be loaded', broken: 'The page has a fault', copied: 'Copied', copy: 'Copy', more: 'Load more', whole: 'Load all', download: 'Download', none: 'None', close: 'Close',
    live: 'Live', lost: 'Connection lost; connecting again', ended: 'Ended', connecting: 'Connecting',
  },
  runs: { detail: 'Detail', range: 'Time', anyTime: 'Any time', hour: 'Last hour', dayRange: 'Last 24 hours', week: 'Last 7 days', month: 'Last 30 days', find: 'Find in this list', save: 'Save this view', saved: 'Saved views', forget: 'Remove view', viewName: 'Name of the view', all_: 'All', waiting: 'waits for an answer', minCost: 'Cost', anyCost: 'Any cost', over: 'over', moreThere: 'Older runs are not loaded', shown: 'shown',
    title: 'Runs', empty: 'No runs match these filters', emptyHint: 'Remove a filter, or start a flow.', none: 'No runs yet',
    noneHint: 'Start a flow here, or with the command:', start: 'Start a run', flow: 'Flow', status: 'Status', user: 'User', run: 'Run', started: 'Started', duration: 'Duration',
    tokens: 'Tokens', cost: 'Cost', questions: 'Questions', failedOnly: 'Failed only', all: 'Child runs too', anyFlow: 'Any flow', anyStatus: 'Any status', anyUser: 'Any user',
    clear: 'Clear filters', waits: 'waits for an answer', filters: 'Filters', stopped: 'no process executes it',
  },
  start: { title: 'Start a run', flow: 'Flow', model: 'Model', modelHint: 'provider/model; empty uses the model of the flow', submit: 'Start', noInputs: 'This flow has no inputs.', optional: 'optional' },
  run: { notAll: 'nodes are shown; weir show lists all', lineage: 'Origin', split: 'Split', step: 'One event back', stepOn: 'One event on', legend: 'Colours of the bars', tree: 'Nodes', rerunOf: 'Runs', fold: 'Collapse', unfold: 'Expand', open: 'Open', compareWith: 'Compare with the original', forkFrom: 'Fork from the beginning', retryNode: 'Try this node again', overviewTab: 'Overview',
    node: 'Node', timeline: 'Timeline', graph: 'Graph', messages: 'Messages', state: 'State', journal: 'Journal', compare: 'Compare', overview: 'Run', inputs: 'Inputs', outputs: 'Outputs', absent: 'Outputs without a value',
    error: 'Error', cancel: 'Cancel', resume: 'Resume', rerun: 'Run again', fork: 'Fork', retry: 'Retry', skip: 'Skip', more: 'More', export: 'Export', verify: 'Verify the record',
    find: 'Find a node', firstFailure: 'First failure', mostExpensive: 'Most expensive call', slowest: 'Slowest node', event: 'Event', of: 'of', latest: 'Latest', children: 'Child runs', forkOf: 'Shares the past of', upTo: 'up to event',
    childOf: 'Child of', roundOf: 'Round of session', user: 'User', origin: 'Started by', contexts: 'Contexts', flow: 'Flow', cancelConfirm: 'Cancel this run? Effects in flight end first.',
    copyJson: 'Copy as JSON', copyCli: 'Copy as command', copyCurl: 'Copy as curl', copyLink: 'Copy link', past: 'You see the run as it was after this event.', toLatest: 'Show the latest', noNodes: 'Nothing has happened yet', noMatch: 'No node matches',
    scrub: 'Position in the journal', iterations: 'iterations', collapse: 'Collapse', expand: 'Expand', waiting: 'Waits for an answer', answerIt: 'Answer', tokens: 'tokens', call: 'model call', duration: 'Duration', cost: 'Cost', zoomHint: 'Zoom in to see names',
    zoomIn: 'Zoom in', zoomOut: 'Zoom out', fit: 'Fit the drawing', noGraph: 'The flow of this run cannot be drawn', shared: 'shared', childHint: 'Nodes of the child run',
    verified: 'The record is consistent', notVerified: 'The record is not consistent', notFound: 'There is no such run',
  },
  node: { template: 'template', templateHint: 'What the template gave is not recorded; the messages of a model call show it', deleted: 'deleted', somebody: 'somebody', unchanged: 'Unchanged keys', stateTab: 'State', before: 'Before', after: 'After', noState: 'The state was empty and stays so', sameState: 'The node did not change the state', attemptOf: 'Attempt', meter: 'Tokens of this call', m_system: 'system', m_tools: 'tools', m_messages: 'messages', m_cached: 'read from the cache', m_output: 'answer', m_reserve: 'reserved for the answer', m_free: 'free', window: 'of a window of', leftNone: 'Nothing was left out', omitted: 'messages are not shown', shows: 'The view begins at message', cleared: 'tool results without their text', shortened: 'tool results with head and tail only', repaired: 'messages repaired for the vendor', held: 'messages that the vendor has', summary: 'A summary replaces messages', pinned: 'pinned', why: 'Reason', playground: 'Open in the playground', result: 'Result', cause: 'Cause',
    close: 'Close the node', inputs: 'Inputs', outputs: 'Outputs', attempts: 'Attempts', effects: 'Effects', sent: 'Model calls', state: 'State written', messages: 'Messages added', waits: 'Waited for', metadata: 'Metadata', error: 'Error', details: 'Details', values: 'Values',
    cached: 'Cached: the result is that of an earlier run', noInputs: 'No inputs', noOutputs: 'No outputs', verified: 'The digest in the journal proves this request', unverified: 'Not proven: the call has not ended, or the program has changed',
    system: 'System', tools: 'Tools', settings: 'Settings', answer: 'Answer', left: 'Left out of the request', noCalls: 'This node made no model call.', request: 'Request', live: 'Live output', answeredBy: 'Answered by', open: 'Open', partial: 'Interrupted answer', code: 'Code', steps: 'Steps',
    input: 'input', cachedTokens: 'cached', output: 'output', reasoning: 'reasoning', estimated: 'estimated', codeLink: 'What this code means', onlyDigest: 'The node type is not available here, so that only the digest is known.', forkHere: 'Fork from here', attempt: 'Attempt', cache: 'Prompt cache', callBefore: 'call before', noBefore: 'none with this model in the run', differs: 'first difference', byte: 'byte', continues: 'none: this call continues it', equal: 'messages are equal', noSteps: 'No steps', wroteNothing: 'wrote nothing',
  },
  palette: { open: 'Go to', hint: 'A page, a flow, or a run by its id or question', none: 'Nothing matches', openRun: 'Open the run', start: 'Start', keys: '↑ ↓ choose, Enter opens' },
  codes: { find: 'Find a code', none: 'No code matches' },
  inbox: { expires: 'expires in', expired: 'expired', title: 'Inbox', empty: 'No questions are waiting', emptyHint: 'Questions of paused runs appear here.', answer: 'Answer', approve: 'Approve', reject: 'Reject', reason: 'Reason', submit: 'Send', sent: 'Answer sent', taken: 'Somebody else has answered this question.', waitsFor: 'waits for', once: 'Allow once', forRun: 'Allow for the run', continue: 'Continue', event: 'Waits for an outside event', notify: 'Notify me', json: 'Answer (JSON)', enter: 'Enter a value that fits.', showRun: 'Open the run' },
  fork: {
    title: 'Fork', from: 'From node', intro: 'The fork shares what happened before this node, and runs it and what follows again. The original run is not changed.', inputs: 'Inputs of the run', state: 'State at that point', model: 'Model', modelHint: 'Empty keeps the model', plan: 'What will happen', reused: 'reused', runs: 'runs again', submit: 'Fork and run', compare: 'Compare with the original', edited: 'edited',
  },
  diff: { hint: 'The newest runs of the same flow are suggested.', title: 'Compare', same: 'The two runs are the same', nodes: 'Nodes', inputs: 'Inputs', outputs: 'Outputs', state: 'State', flow: 'Flow', contexts: 'Messages', left: 'A', right: 'B', common: 'messages in common', choose: 'Run to compare with', first: 'The first event that differs', missing: 'not reached' },
  messages: { context: 'Context', empty: 'This context has no messages', tree: 'Contexts', history: 'History', count: 'messages' },
  flows: { versions: 'Versions', check: 'Source', promote: 'Promote', promoted: 'In use', rollBack: 'Roll back to this', compare: 'Compare with the one in use', save: 'Save as a version', saveHint: 'What is new', by: 'by', differences: 'Difference from the version in use', filed: 'This flow is read from a file. Put it by the API to keep versions.', put: 'Keep a version on the server', paused: 'Paused', pause: 'Pause', unpause: 'End the pause', example: 'Try an example', exampleHint: 'These run on the server without a key.', title: 'Flows', empty: 'This server offers no flows', emptyHint: 'Start it with flow files or a folder:', source: 'Source', graph: 'Graph', valid: 'Valid', invalid: 'problems', try: 'Try changes here. They are checked, and not saved.', start: 'Start a run', chat: 'Chat', inputs: 'Inputs', fingerprint: 'Fingerprint', model: 'Model', problem: 'problem', normal: 'Normal form', reset: 'Discard changes' },
  chat: { recent: 'Conversations', original: 'Original conversation', edit: 'Edit', editHint: 'Edit this message. What follows is answered again in a copy of the conversation.', cancel: 'Cancel', beside: 'Show the run', hide: 'Hide the run', again: 'Regenerate', title: 'Chat', choose: 'Choose a flow', message: 'Message', send: 'Send', newChat: 'New conversation', empty: 'Send the first message', thinking: 'The round is running', openRun: 'Open the run of this round', regenerate: 'Fork here', noFlows: 'No flow of this server takes a message', hint: 'Enter sends, Shift+Enter adds a line', queued: 'in the queue', failed: 'The round failed', waits: 'The round waits for an answer' },
  sessions: { hidden: 'more are not shown; narrow the search', find: 'Find in the trajectory', anyType: 'Any type', title: 'Sessions', empty: 'No sessions yet', emptyHint: 'A conversation with a flow is a session.', rounds: 'Rounds', round: 'Round', messages: 'Messages', thread: 'Thread', updated: 'Last round', queued: 'Queued', trajectory: 'Trajectory', conversation: 'Conversation', roundsTab: 'Rounds', noTrajectory: 'No trajectory was recorded', fork: 'Fork', open: 'Open' },
  memory: { find: 'Find in memory', noMatch: 'Nothing matches', forgetConfirm: 'Forget this for ever?', version: 'version', title: 'Memory', empty: 'Nothing is remembered', emptyHint: 'Flows with the memory tools write here.', key: 'Key', text: 'Text', kind: 'Kind', written: 'Written', user: 'User', forget: 'Forget' },
  usage: { title: 'Usage', by: 'By', day: 'Day', flow: 'Flow', user: 'User', runs: 'Runs', calls: 'Model calls', input: 'Input tokens', cachedInput: 'of which cached', output: 'Output tokens', reasoning: 'of which reasoning', cost: 'Cost', empty: 'Nothing was spent in this time', incomplete: 'Older runs were left out', days: 'Days', total: 'Total' },
} as const

export const statusText: Record<string, string> = {
  pending: 'Pending', running: 'Running', waiting: 'Waiting', paused: 'Waiting', completed: 'Completed', failed: 'Failed', skipped: 'Skipped', cancelled: 'Cancelled', not_needed: 'Not needed', stopped: 'Stopped',
}

export const phaseText: Record<string, string> = {
  run: 'Runs', body: 'Iterations', pull: 'Computes an input', retry: 'Waits before the next attempt', input: 'Waits for a person', approval: 'Waits for an approval', event: 'Waits for an event',
  timer: 'Waits for a time', child: 'Child run', budget: 'Waits for a budget', effect: 'Waits for a decision', break: 'Breakpoint',
}
