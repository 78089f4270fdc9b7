/// What the gateway sends. A new message is its payload struct, a case and a row of `ServerMessageType`, and a case here; the
/// compiler asks for all of them. docs/reference/schemas and docs/reference/protocol.md describe it.
public enum ServerMessage: ProtocolMessage {
  case welcome(Welcome)
  case ok(Success)
  case err(Failure)
  case authExpiring(AuthExpiring)
  case ping, pong, ack
  case bye(Bye)
  case callOffer(CallOffer)
  case callWake(CallWake)
  case callConnected(CallConnected)
  case callUpdate(CallUpdate)
  case callCancel(CallOver)
  case callEnded(CallOver)
  case callGone(CallOver)
  case callProgress(CallProgress)
  case mediaRestart(MediaRestart)
  case mediaAnswer(MediaAnswer)
  case callHeld(CallHeld)
  case callMuted(CallMuted)
  case callDigit(CallDigit)
  case callTransferred(CallTransferred)
  case quality(Quality)
  case dirChanged(DirectoryChanged)
  case dirFull(DirectoryPart)
  case dirDelta(DirectoryPart)
  case histChanged(HistoryChanged)

  public var content: (type: ServerMessageType, payload: (any Encodable)?) {
    switch self {
    case .welcome(let d): (.welcome, d)
    case .ok(let d): (.ok, d == Success() ? nil : d)
    case .err(let d): (.err, d)
    case .authExpiring(let d): (.authExpiring, d)
    case .ping: (.ping, nil)
    case .pong: (.pong, nil)
    case .ack: (.ack, nil)
    case .bye(let d): (.bye, d)
    case .callOffer(let d): (.callOffer, d)
    case .callWake(let d): (.callWake, d)
    case .callConnected(let d): (.callConnected, d)
    case .callUpdate(let d): (.callUpdate, d)
    case .callCancel(let d): (.callCancel, d)
    case .callEnded(let d): (.callEnded, d)
    case .callGone(let d): (.callGone, d)
    case .callProgress(let d): (.callProgress, d)
    case .mediaRestart(let d): (.mediaRestart, d)
    case .mediaAnswer(let d): (.mediaAnswer, d)
    case .callHeld(let d): (.callHeld, d)
    case .callMuted(let d): (.callMuted, d)
    case .callDigit(let d): (.callDigit, d)
    case .callTransferred(let d): (.callTransferred, d)
    case .quality(let d): (.quality, d)
    case .dirChanged(let d): (.dirChanged, d)
    case .dirFull(let d): (.dirFull, d)
    case .dirDelta(let d): (.dirDelta, d)
    case .histChanged(let d): (.histChanged, d)
    }
  }
}

/// The table of server-to-client messages.
public enum ServerMessageType: String, ProtocolMessageType {
  case welcome, ok, err, ping, pong, ack, bye, quality
  case authExpiring = "auth.expiring"
  case callOffer = "call.offer"
  case callWake = "call.wake"
  case callConnected = "call.connected"
  case callUpdate = "call.update"
  case callCancel = "call.cancel"
  case callEnded = "call.ended"
  case callGone = "call.gone"
  case callProgress = "call.progress"
  case mediaRestart = "media.restart"
  case mediaAnswer = "media.answer"
  case callHeld = "call.held"
  case callMuted = "call.muted"
  case callDigit = "call.digit"
  case callTransferred = "call.transferred"
  case dirChanged = "dir.changed"
  case dirFull = "dir.full"
  case dirDelta = "dir.delta"
  case histChanged = "hist.changed"

  public var row: MessageRow<ServerMessage> {
    switch self {
    case .welcome: .init(.response, ServerMessage.welcome)
    case .ok: .init(.response, ServerMessage.ok)
    case .err: .init(.event, ServerMessage.err)
    case .authExpiring: .init(.event, ServerMessage.authExpiring)
    case .ping: .init(.event, .ping)
    case .pong: .init(.event, .pong)
    case .ack: .init(.event, .ack)
    case .bye: .init(.event, ServerMessage.bye)
    case .callOffer: .init(.event, ServerMessage.callOffer, .numbered)
    case .callWake: .init(.event, ServerMessage.callWake, .call)
    case .callConnected: .init(.event, ServerMessage.callConnected, .numbered)
    case .callUpdate: .init(.event, ServerMessage.callUpdate, .numbered)
    case .callCancel: .init(.event, ServerMessage.callCancel, .numbered)
    case .callEnded: .init(.event, ServerMessage.callEnded, .numbered)
    case .callGone: .init(.event, ServerMessage.callGone, .numbered)
    case .callProgress: .init(.event, ServerMessage.callProgress, .numbered)
    case .mediaRestart: .init(.event, ServerMessage.mediaRestart, .numbered)
    case .mediaAnswer: .init(.response, ServerMessage.mediaAnswer, .numbered)
    case .callHeld: .init(.event, ServerMessage.callHeld, .numbered)
    case .callMuted: .init(.event, ServerMessage.callMuted, .numbered)
    case .callDigit: .init(.event, ServerMessage.callDigit, .numbered)
    case .callTransferred: .init(.event, ServerMessage.callTransferred, .numbered)
    case .quality: .init(.event, ServerMessage.quality, .call)
    case .dirChanged: .init(.event, ServerMessage.dirChanged)
    case .dirFull: .init(.response, ServerMessage.dirFull)
    case .dirDelta: .init(.response, ServerMessage.dirDelta)
    case .histChanged: .init(.event, ServerMessage.histChanged)
    }
  }

  /// The one terminal message of a (call, device), beside a refusing `err`.
  public var isTerminal: Bool { self == .callCancel || self == .callEnded || self == .callGone }
}
