import TrunklineAppProtocol
import TrunklineBytes
@_spi(Fuzzing) import TrunklineClient
import TrunklineClientMachines
import TrunklineHPKE

/// A push's payload: reading it is a total function, and whatever it says, a push that must be reported is reported first, and ended at once
/// if it names no call. The first byte of an even value is left out and the rest is the payload; after an odd one the rest is what the gateway
/// sealed for this device.
@Sendable func fuzzPush(_ bytes: [UInt8]) {
  guard let first = bytes.first else { return }
  let rest = Array(bytes.dropFirst())
  if first & 1 == 1 { return fuzzSealed(rest) }
  var push = PushPayload(json: rest)
  if let payload = push {
    precondition(payload.caller.h.count <= 256 && payload.caller.n?.count ?? 0 <= 256, "what is shown is bounded")
    precondition(!payload.caller.h.isEmpty && !payload.wake.exposed.isEmpty, "a call has somebody, and a way in")
    if let sealed = payload.sealed, let caller = SealedCaller.open(sealed, call: payload.call, key: sealKey) {
      push?.caller = caller
    }
  }
  for mustReport in [true, false] {
    var phone = PhoneMachine(.init(device: Hello.Device(id: "cell")), random: .seeded(1))
    var out: [PhoneMachine.Action] = []
    let told = push.map { PhoneMachine.Push(call: $0.call, caller: $0.caller, wake: $0.wake.exposed, gateway: $0.gateway) }
    phone.handle(.pushed(told, mustReport: mustReport), at: .zero, into: &out)
    var isReport = false
    if case .report(let call, _, _)? = out.first { isReport = push.map { $0.call == call } ?? true }
    precondition(isReport == mustReport, "the report is the first of its turn, if there must be one")
    var isEnded = false
    for case .reportEnded in out { isEnded = true }
    precondition(isEnded == (mustReport && push == nil), "only a call of nobody is ended at once")
  }
}

private let sealKey = (0..<32).map { UInt8($0 + 1) }
private let sealPublicKey = HPKE.publicKey(of: sealKey) ?? []

/// What the gateway sealed is opened to a caller or to nothing; for another call, to nothing.
private func fuzzSealed(_ text: [UInt8]) {
  let call = Identifier(high: 1, low: 2)
  let scalar = (0..<32).map { UInt8($0 + 7) }
  guard
    let sealed = HPKE.seal(
      text, for: sealPublicKey, info: Array("trunkline caller v1".utf8), authenticating: Array(call.description.utf8),
      scalar: scalar)
  else { return }
  let letters = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
  var coded: [UInt8] = []
  for start in stride(from: 0, to: sealed.count, by: 3) {
    let part = sealed[start..<min(start + 3, sealed.count)]
    let word = part.reduce(0) { $0 << 8 | Int($1) } << (8 * (3 - part.count))
    for index in 0...part.count { coded.append(letters[word >> (18 - 6 * index) & 63]) }
  }
  let opened = String(decoding: coded, as: UTF8.self)
  _ = SealedCaller.open(opened, call: call, key: sealKey)
  precondition(SealedCaller.open(opened, call: Identifier(high: 1, low: 3), key: sealKey) == nil, "sealed for another call")
}
