import { Component, type ReactNode } from 'react'
import { ApiError } from '../api/client'
import { t } from '../strings'
import { Failure } from './common'

/** Shows the failure of what is inside instead of an empty page. */
export class Boundary extends Component<{ children: ReactNode }, { error?: Error }> {
  state: { error?: Error } = {}

  static getDerivedStateFromError(error: Error) {
    return { error }
  }

  render() {
    if (!this.state.error) return this.props.children
    return <Failure error={new ApiError(500, { detail: t.state.broken, hint: this.state.error.message })} retry={() => this.setState({ error: undefined })} />
  }
}
