/// The `t` of client-to-server messages, and what docs/protocol.md says of each type.
public enum ClientMessageType: String, CaseIterable, Sendable {
  case hello, ping, pong, ack, err, bye, stats
  case authRefresh = "auth.refresh"
  case devicePut = "device.put"
  case deviceDel = "device.del"
  case deviceState = "device.state"
  case callRinging = "call.ringing"
  case callUnavailable = "call.unavailable"
  case callPrepare = "call.prepare"
  case callAnswer = "call.answer"
  case callReject = "call.reject"
  case callEnd = "call.end"
  case callStart = "call.start"
  case mediaReady = "media.ready"
  case mediaFail = "media.fail"
  case mediaActive = "media.active"
  case mediaRestart = "media.restart"
  case iceCand = "ice.cand"
  case iceEnd = "ice.end"
  case callHold = "call.hold"
  case callMute = "call.mute"
  case callDTMF = "call.dtmf"
  case callTransfer = "call.transfer"
  case callGroup = "call.group"
  case callTranslate = "call.translate"
  case dirGet = "dir.get"
  case histList = "hist.list"
  case histResolve = "hist.resolve"

  /// Carries an `id` and gets exactly one answer.
  public var isRequest: Bool {
    switch self {
    case .hello, .authRefresh, .devicePut, .deviceDel, .deviceState, .callPrepare, .callAnswer, .callReject, .callEnd,
      .callStart,
      .callHold, .callMute, .callDTMF, .callTransfer, .callGroup, .callTranslate, .mediaRestart, .dirGet, .histList,
      .histResolve:
      true
    case .ping, .pong, .ack, .err, .bye, .stats, .callRinging, .callUnavailable, .mediaReady, .mediaFail, .mediaActive,
      .iceCand,
      .iceEnd:
      false
    }
  }

  /// Carries a `seq` and is kept until acked.
  public var isNumbered: Bool {
    switch self {
    case .callRinging, .callUnavailable, .callPrepare, .callAnswer, .callReject, .callEnd, .callStart, .mediaReady,
      .mediaFail,
      .mediaActive, .mediaRestart, .iceCand, .iceEnd, .callHold, .callMute, .callDTMF, .callTransfer, .callGroup,
      .callTranslate:
      true
    case .hello, .ping, .pong, .ack, .err, .bye, .stats, .authRefresh, .devicePut, .deviceDel, .deviceState, .dirGet,
      .histList,
      .histResolve:
      false
    }
  }

  /// Names a call in the envelope: the numbered messages, and `stats`.
  public var needsCall: Bool { isNumbered || self == .stats }
}

/// The `t` of server-to-client messages.
public enum ServerMessageType: String, CaseIterable, Sendable {
  case welcome, ok, err, ping, pong, ack, bye, quality
  case authExpiring = "auth.expiring"
  case callOffer = "call.offer"
  case callConnected = "call.connected"
  case callUpdate = "call.update"
  case callCancel = "call.cancel"
  case callEnded = "call.ended"
  case callGone = "call.gone"
  case callProgress = "call.progress"
  case mediaRestart = "media.restart"
  case mediaAnswer = "media.answer"
  case callHeld = "call.held"
  case callDigit = "call.digit"
  case callTransferred = "call.transferred"
  case dirChanged = "dir.changed"
  case dirFull = "dir.full"
  case dirDelta = "dir.delta"
  case histChanged = "hist.changed"

  /// Carries a `seq` and is kept until acked.
  public var isNumbered: Bool {
    switch self {
    case .callOffer, .callConnected, .callUpdate, .callCancel, .callEnded, .callGone, .callProgress, .mediaRestart,
      .mediaAnswer,
      .callHeld, .callDigit, .callTransferred, .dirChanged, .histChanged:
      true
    case .welcome, .ok, .err, .ping, .pong, .ack, .bye, .quality, .authExpiring, .dirFull, .dirDelta: false
    }
  }

  /// The one terminal message of a (call, device), beside a refusing `err`.
  public var isTerminal: Bool { self == .callCancel || self == .callEnded || self == .callGone }
}
