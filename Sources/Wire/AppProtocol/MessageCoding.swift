enum EnvelopeKey: String, CodingKey { case t, id, re, seq, ack, call, d }

typealias EnvelopeReader = KeyedDecodingContainer<EnvelopeKey>
typealias EnvelopeWriter = KeyedEncodingContainer<EnvelopeKey>

extension EnvelopeReader {
  /// `d`, which may be absent when empty: the type's own fields then decide whether that is legal.
  func payload<Payload: Decodable>(_ type: Payload.Type = Payload.self) throws -> Payload {
    if contains(.d), try !decodeNil(forKey: .d) { return try decode(Payload.self, forKey: .d) }
    return try Payload(from: NoFields())
  }
}

extension ClientMessage {
  init(_ type: ClientMessageType, from envelope: EnvelopeReader) throws {
    self =
      switch type {
      case .hello: .hello(try envelope.payload())
      case .authRefresh: .authRefresh(try envelope.payload())
      case .devicePut: .devicePut(try envelope.payload())
      case .deviceDel: .deviceDel
      case .deviceState: .deviceState(try envelope.payload())
      case .ping: .ping
      case .pong: .pong
      case .ack: .ack
      case .err: .err(try envelope.payload())
      case .bye: .bye(try envelope.payload())
      case .callRinging: .callRinging
      case .callUnavailable: .callUnavailable(try envelope.payload())
      case .callPrepare: .callPrepare(try envelope.payload())
      case .callAnswer: .callAnswer(try envelope.payload())
      case .callReject: .callReject(try envelope.payload())
      case .callEnd: .callEnd(try envelope.payload())
      case .callStart: .callStart(try envelope.payload())
      case .mediaReady: .mediaReady(try envelope.payload())
      case .mediaFail: .mediaFail(try envelope.payload())
      case .mediaActive: .mediaActive(try envelope.payload())
      case .mediaRestart: .mediaRestart(try envelope.payload())
      case .iceCand: .iceCand(try envelope.payload())
      case .iceEnd: .iceEnd(try envelope.payload())
      case .callHold: .callHold(try envelope.payload())
      case .callMute: .callMute(try envelope.payload())
      case .callDTMF: .callDTMF(try envelope.payload())
      case .stats: .stats(try envelope.payload())
      case .callTransfer: .callTransfer(try envelope.payload())
      case .callGroup, .callTranslate, .dirGet, .histList, .histResolve: .later(type)
      }
  }

  func encodePayload(to envelope: inout EnvelopeWriter) throws {
    switch self {
    case .hello(let d): try envelope.encode(d, forKey: .d)
    case .authRefresh(let d): try envelope.encode(d, forKey: .d)
    case .devicePut(let d): try envelope.encode(d, forKey: .d)
    case .deviceState(let d): try envelope.encode(d, forKey: .d)
    case .err(let d): try envelope.encode(d, forKey: .d)
    case .bye(let d): try envelope.encode(d, forKey: .d)
    case .callUnavailable(let d): try envelope.encode(d, forKey: .d)
    case .callPrepare(let d): try envelope.encode(d, forKey: .d)
    case .callAnswer(let d): try envelope.encode(d, forKey: .d)
    case .callReject(let d): try envelope.encode(d, forKey: .d)
    case .callEnd(let d): try envelope.encode(d, forKey: .d)
    case .callStart(let d): try envelope.encode(d, forKey: .d)
    case .mediaReady(let d): try envelope.encode(d, forKey: .d)
    case .mediaFail(let d): try envelope.encode(d, forKey: .d)
    case .mediaActive(let d): try envelope.encode(d, forKey: .d)
    case .mediaRestart(let d): try envelope.encode(d, forKey: .d)
    case .iceCand(let d), .iceEnd(let d): try envelope.encode(d, forKey: .d)
    case .callHold(let d): try envelope.encode(d, forKey: .d)
    case .callMute(let d): try envelope.encode(d, forKey: .d)
    case .callDTMF(let d): try envelope.encode(d, forKey: .d)
    case .callTransfer(let d): try envelope.encode(d, forKey: .d)
    case .stats(let d): try envelope.encode(d, forKey: .d)
    case .deviceDel, .ping, .pong, .ack, .callRinging, .later: break
    }
  }
}

extension ServerMessage {
  init(_ type: ServerMessageType, from envelope: EnvelopeReader) throws {
    self =
      switch type {
      case .welcome: .welcome(try envelope.payload())
      case .ok: .ok(try envelope.payload())
      case .err: .err(try envelope.payload())
      case .authExpiring: .authExpiring(try envelope.payload())
      case .ping: .ping
      case .pong: .pong
      case .ack: .ack
      case .bye: .bye(try envelope.payload())
      case .callOffer: .callOffer(try envelope.payload())
      case .callConnected: .callConnected(try envelope.payload())
      case .callUpdate: .callUpdate(try envelope.payload())
      case .callCancel: .callCancel(try envelope.payload())
      case .callEnded: .callEnded(try envelope.payload())
      case .callGone: .callGone(try envelope.payload())
      case .callProgress: .callProgress(try envelope.payload())
      case .mediaRestart: .mediaRestart(try envelope.payload())
      case .mediaAnswer: .mediaAnswer(try envelope.payload())
      case .callHeld: .callHeld(try envelope.payload())
      case .callDigit: .callDigit(try envelope.payload())
      case .quality: .quality(try envelope.payload())
      case .callTransferred: .callTransferred(try envelope.payload())
      case .dirChanged, .dirFull, .dirDelta, .histChanged: .later(type)
      }
  }

  func encodePayload(to envelope: inout EnvelopeWriter) throws {
    switch self {
    case .welcome(let d): try envelope.encode(d, forKey: .d)
    case .ok(let d): if d != Success() { try envelope.encode(d, forKey: .d) }
    case .err(let d): try envelope.encode(d, forKey: .d)
    case .authExpiring(let d): try envelope.encode(d, forKey: .d)
    case .bye(let d): try envelope.encode(d, forKey: .d)
    case .callOffer(let d): try envelope.encode(d, forKey: .d)
    case .callConnected(let d): try envelope.encode(d, forKey: .d)
    case .callUpdate(let d): try envelope.encode(d, forKey: .d)
    case .callCancel(let d), .callEnded(let d), .callGone(let d): try envelope.encode(d, forKey: .d)
    case .callProgress(let d): try envelope.encode(d, forKey: .d)
    case .mediaRestart(let d): try envelope.encode(d, forKey: .d)
    case .mediaAnswer(let d): try envelope.encode(d, forKey: .d)
    case .callHeld(let d): try envelope.encode(d, forKey: .d)
    case .callDigit(let d): try envelope.encode(d, forKey: .d)
    case .callTransferred(let d): try envelope.encode(d, forKey: .d)
    case .quality(let d): try envelope.encode(d, forKey: .d)
    case .ping, .pong, .ack, .later: break
    }
  }
}
