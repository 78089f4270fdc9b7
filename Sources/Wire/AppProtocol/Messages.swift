/// What a client sends, by type. A new message is a case here and in `ClientMessageType`; the exhaustive switches point to
/// the rest.
public enum ClientMessage: Hashable, Sendable {
  case hello(Hello)
  case authRefresh(AuthRefresh)
  case devicePut(DevicePut)
  case deviceDel
  case deviceState(DeviceState)
  case ping, pong, ack
  case err(Failure)
  case bye(Bye)
  case callRinging
  case callUnavailable(CallUnavailable)
  case callPrepare(CallPrepare)
  case callAnswer(CallAnswer)
  case callReject(CallReject)
  case callEnd(CallEnd)
  case callStart(CallStart)
  case mediaReady(MediaReady)
  case mediaFail(MediaFail)
  case mediaActive(MediaActive)
  case mediaRestart(MediaRestart)
  case iceCand(ICECandidateLine)
  case iceEnd(ICECandidateLine)
  case callHold(CallHold)
  case callMute(CallMute)
  case callDTMF(CallDTMF)
  case callTransfer(CallTransfer)
  case stats(StreamStats)
  /// A type of docs/protocol.md whose content this version does not read: `call.group`, `call.translate`, `dir.get`,
  /// `hist.list`, `hist.resolve`. Answered `err{unsupported}`.
  case later(ClientMessageType)

  public var type: ClientMessageType {
    switch self {
    case .hello: .hello
    case .authRefresh: .authRefresh
    case .devicePut: .devicePut
    case .deviceDel: .deviceDel
    case .deviceState: .deviceState
    case .ping: .ping
    case .pong: .pong
    case .ack: .ack
    case .err: .err
    case .bye: .bye
    case .callRinging: .callRinging
    case .callUnavailable: .callUnavailable
    case .callPrepare: .callPrepare
    case .callAnswer: .callAnswer
    case .callReject: .callReject
    case .callEnd: .callEnd
    case .callStart: .callStart
    case .mediaReady: .mediaReady
    case .mediaFail: .mediaFail
    case .mediaActive: .mediaActive
    case .mediaRestart: .mediaRestart
    case .iceCand: .iceCand
    case .iceEnd: .iceEnd
    case .callHold: .callHold
    case .callMute: .callMute
    case .callDTMF: .callDTMF
    case .callTransfer: .callTransfer
    case .stats: .stats
    case .later(let type): type
    }
  }
}

/// What the gateway sends, by type.
public enum ServerMessage: Hashable, Sendable {
  case welcome(Welcome)
  case ok(Success)
  case err(Failure)
  case authExpiring(AuthExpiring)
  case ping, pong, ack
  case bye(Bye)
  case callOffer(CallOffer)
  case callConnected(CallConnected)
  case callUpdate(CallUpdate)
  case callCancel(CallOver)
  case callEnded(CallOver)
  case callGone(CallOver)
  case callProgress(CallProgress)
  case mediaRestart(MediaRestart)
  case mediaAnswer(MediaAnswer)
  case callHeld(CallHeld)
  case callDigit(CallDigit)
  case callTransferred(CallTransferred)
  case quality(Quality)
  /// A type of docs/protocol.md whose content this version does not read or write.
  case later(ServerMessageType)

  public var type: ServerMessageType {
    switch self {
    case .welcome: .welcome
    case .ok: .ok
    case .err: .err
    case .authExpiring: .authExpiring
    case .ping: .ping
    case .pong: .pong
    case .ack: .ack
    case .bye: .bye
    case .callOffer: .callOffer
    case .callConnected: .callConnected
    case .callUpdate: .callUpdate
    case .callCancel: .callCancel
    case .callEnded: .callEnded
    case .callGone: .callGone
    case .callProgress: .callProgress
    case .mediaRestart: .mediaRestart
    case .mediaAnswer: .mediaAnswer
    case .callHeld: .callHeld
    case .callDigit: .callDigit
    case .callTransferred: .callTransferred
    case .quality: .quality
    case .later(let type): type
    }
  }
}
