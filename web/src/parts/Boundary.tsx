import { Component, type ReactNode } from 'react'
import { WeirError } from '../api'
import { t } from '../strings'
import { Failure } from './common'

/** Shows the failure of what is inside instead of an empty page. */
export class Boundary extends Component<{ children: ReactNode }, { error?: Error }> {
  state: { error?: Error } = {}

  static getDerivedStateFromError(error: Error) {
    return { error }
  }

  render() {
    const { error } = this.state
    if (!error) return this.props.children
    // A browser keeps the failure to load a script, so that only loading the document again helps.
    if (/dynamically imported module|importing a module/i.test(error.message)) return <Failure error={new WeirError(0, { detail: error.message })} retry={() => location.reload()} />
    return <Failure error={new WeirError(500, { detail: t.state.broken, hint: error.message })} retry={() => this.setState({ error: undefined })} />
  }
}
