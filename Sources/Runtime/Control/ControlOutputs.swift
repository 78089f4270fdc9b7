/// The targets of control's actions: one protocol for each component around it, implemented by the composition of the gateway. All
/// are called on the control thread and must not wait. None has a default: a new requirement is written in each implementation.
///
/// They are called for messages and calls, never for a packet of media, so an existential is cheap enough.
public struct ControlOutputs {
  let sip: any SIPOutput
  let names: any NameOutput
  let media: any MediaPlaneOutput
  let apps: any AppOutput
  let push: any PushOutput
  let webhooks: any WebhookOutput
  let store: any StoreOutput
  let audio: any AudioOutput
  let answers: any AnswerOutput
  let state: any StateOutput
  /// Nil: a gateway without a cluster.
  let cluster: (any ClusterOutput)?

  public init(
    sip: any SIPOutput, names: any NameOutput, media: any MediaPlaneOutput, apps: any AppOutput, push: any PushOutput,
    webhooks: any WebhookOutput, store: any StoreOutput, audio: any AudioOutput, answers: any AnswerOutput,
    state: any StateOutput, cluster: (any ClusterOutput)?
  ) {
    (self.sip, self.names, self.media, self.apps) = (sip, names, media, apps)
    (self.push, self.webhooks, self.store, self.audio) = (push, webhooks, store, audio)
    (self.answers, self.state, self.cluster) = (answers, state, cluster)
  }
}
