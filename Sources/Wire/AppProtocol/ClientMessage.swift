/// The messages that an app sends. A new message needs its payload struct, a case and a row of `ClientMessageType`, and a case
/// here; the compiler requires all of them. docs/reference/schemas and docs/reference/protocol.md describe the messages.
public enum ClientMessage: ProtocolMessage {
  case hello(Hello)
  case authRefresh(AuthRefresh)
  case devicePut(DevicePut)
  case deviceDel
  case deviceState(DeviceState)
  case ping, pong, ack
  case err(Failure)
  case bye(Bye)
  case callRinging(CallRinging)
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
  case callHold(CallHold)
  case callMute(CallMute)
  case callDTMF(CallDTMF)
  case callTransfer(CallTransfer)
  case callGroup(CallGroup)
  case callTranslate(CallTranslate)
  case stats(StreamStats)
  case dirGet(DirectoryGet)
  case dirFind(DirectoryFind)
  case histList(HistoryList)
  case histResolve(HistoryResolve)
  case userGet

  public var content: (type: ClientMessageType, payload: (any Encodable)?) {
    switch self {
    case .hello(let d): (.hello, d)
    case .authRefresh(let d): (.authRefresh, d)
    case .devicePut(let d): (.devicePut, d)
    case .deviceDel: (.deviceDel, nil)
    case .deviceState(let d): (.deviceState, d)
    case .ping: (.ping, nil)
    case .pong: (.pong, nil)
    case .ack: (.ack, nil)
    case .err(let d): (.err, d)
    case .bye(let d): (.bye, d)
    case .callRinging(let d): (.callRinging, d == CallRinging() ? nil : d)
    case .callUnavailable(let d): (.callUnavailable, d)
    case .callPrepare(let d): (.callPrepare, d)
    case .callAnswer(let d): (.callAnswer, d)
    case .callReject(let d): (.callReject, d)
    case .callEnd(let d): (.callEnd, d)
    case .callStart(let d): (.callStart, d)
    case .mediaReady(let d): (.mediaReady, d)
    case .mediaFail(let d): (.mediaFail, d)
    case .mediaActive(let d): (.mediaActive, d)
    case .mediaRestart(let d): (.mediaRestart, d)
    case .callHold(let d): (.callHold, d)
    case .callMute(let d): (.callMute, d)
    case .callDTMF(let d): (.callDTMF, d)
    case .callTransfer(let d): (.callTransfer, d)
    case .callGroup(let d): (.callGroup, d)
    case .callTranslate(let d): (.callTranslate, d)
    case .stats(let d): (.stats, d)
    case .dirGet(let d): (.dirGet, d)
    case .dirFind(let d): (.dirFind, d)
    case .histList(let d): (.histList, d)
    case .histResolve(let d): (.histResolve, d)
    case .userGet: (.userGet, nil)
    }
  }
}

/// The table of client-to-server messages.
public enum ClientMessageType: String, ProtocolMessageType {
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
  case callHold = "call.hold"
  case callMute = "call.mute"
  case callDTMF = "call.dtmf"
  case callTransfer = "call.transfer"
  case callGroup = "call.group"
  case callTranslate = "call.translate"
  case dirGet = "dir.get"
  case dirFind = "dir.find"
  case histList = "hist.list"
  case histResolve = "hist.resolve"
  case userGet = "user.get"

  public var row: MessageRow<ClientMessage> {
    switch self {
    case .hello: .init(.request, ClientMessage.hello)
    case .authRefresh: .init(.request, ClientMessage.authRefresh)
    case .devicePut: .init(.request, ClientMessage.devicePut)
    case .deviceDel: .init(.request, .deviceDel)
    case .deviceState: .init(.request, ClientMessage.deviceState)
    case .ping: .init(.event, .ping)
    case .pong: .init(.event, .pong)
    case .ack: .init(.event, .ack)
    case .err: .init(.event, ClientMessage.err)
    case .bye: .init(.event, ClientMessage.bye)
    case .callRinging: .init(.event, ClientMessage.callRinging, .numbered)
    case .callUnavailable: .init(.event, ClientMessage.callUnavailable, .numbered)
    case .callPrepare: .init(.request, ClientMessage.callPrepare, .numbered)
    case .callAnswer: .init(.request, ClientMessage.callAnswer, .numbered)
    case .callReject: .init(.request, ClientMessage.callReject, .numbered)
    case .callEnd: .init(.request, ClientMessage.callEnd, .numbered)
    case .callStart: .init(.request, ClientMessage.callStart, .numbered)
    case .mediaReady: .init(.event, ClientMessage.mediaReady, .numbered)
    case .mediaFail: .init(.event, ClientMessage.mediaFail, .numbered)
    case .mediaActive: .init(.event, ClientMessage.mediaActive, .numbered)
    case .mediaRestart: .init(.request, ClientMessage.mediaRestart, .numbered)
    case .callHold: .init(.request, ClientMessage.callHold, .numbered)
    case .callMute: .init(.request, ClientMessage.callMute, .numbered)
    case .callDTMF: .init(.request, ClientMessage.callDTMF, .numbered)
    case .callTransfer: .init(.request, ClientMessage.callTransfer, .numbered)
    case .callGroup: .init(.request, ClientMessage.callGroup, .numbered)
    case .callTranslate: .init(.request, ClientMessage.callTranslate, .numbered)
    case .stats: .init(.event, ClientMessage.stats, .call)
    case .dirGet: .init(.request, ClientMessage.dirGet)
    case .dirFind: .init(.request, ClientMessage.dirFind)
    case .histList: .init(.request, ClientMessage.histList)
    case .histResolve: .init(.request, ClientMessage.histResolve)
    case .userGet: .init(.request, .userGet)
    }
  }

  /// The request only reads: it has no effect, its answer is not kept, and a repeat is answered again.
  public var isRead: Bool { isOfDirectory || self == .userGet }

  /// Answered from the directory and the history, where the gateway keeps them.
  public var isOfDirectory: Bool { [.dirGet, .dirFind, .histList, .histResolve].contains(self) }
}
