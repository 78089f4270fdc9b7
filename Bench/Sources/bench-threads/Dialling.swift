import BenchKit
import CBenchNet
import MediaThreads
import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineDTLS
import TrunklineMediaSession
import TrunklinePlatform
import TrunklineRTP
import TrunklineSRTP
import TrunklineSTUN

/// One call on its way to being connected, from the app's side: a check that nominates, then a handshake as client.
final class Dialling {
  let session: MediaSessionID
  private(set) var isDone = false
  private let leg = AppLegID(raw: 1)
  private let test: PlaneUnderTest
  private let pair: CallPair
  private let encoding: AudioEncoding
  private let local: AppLegLocal
  private var association: DTLSAssociation
  private var checkedAt = Instant.zero
  private var isNominated = false
  private let room = UnsafeMutableRawBufferPointer.allocate(byteCount: 2_048, alignment: 16)

  init(_ test: PlaneUnderTest, _ pair: CallPair, _ encoding: AudioEncoding) throws {
    (self.test, self.pair, self.encoding) = (test, pair, encoding)
    let (id, reservation) = try test.reserve()
    session = id
    (pair.trunkRemote, pair.appRemote) = (reservation.trunkAddress.port, reservation.appCandidates[0].port)
    pair.appPayloadType = encoding == .opus ? 111 : 0
    local = AppLegLocal(ufrag: "gw\(id.raw)", password: "gatewaypasswordgateway", ssrc: UInt32(id.raw) + 7)
    let remote = AppLegRemote(
      generation: 1, ufrag: "app", password: "apppasswordapppassword", fingerprintAlgorithm: "sha-256",
      fingerprint: test.client.fingerprint.bytes, encoding: encoding, payloadType: pair.appPayloadType)
    association = try DTLSAssociation(
      .client, identity: test.client, remoteFingerprint: DTLSFingerprint(algorithm: "sha-256", bytes: reservation.fingerprint))
    test.plane.send(.addAppLeg(id, leg, local))
    test.plane.send(.setAppRemote(id, leg, remote, newLocal: nil, newAssociation: true))
  }

  deinit { room.deallocate() }

  /// What is due or has come.
  func advance() throws {
    guard !isDone else { return }
    let now = MonotonicClock.now()
    if !isNominated, now - checkedAt > .milliseconds(100) {
      checkedAt = now
      check()
    }
    if isNominated { association.handleTimeout() }
    var stamp: Int64 = 0
    var from: UInt16 = 0
    while true {
      let count = bn_receive(pair.app, room.baseAddress, room.count, &stamp, &from)
      guard count > 0 else { break }
      if room[0] < 4 {
        if !isNominated { association.start() }
        isNominated = true
      } else if (20...63).contains(room[0]) {
        association.receive(UnsafeRawBufferPointer(rebasing: room[..<count]))
      }
    }
    association.drain { _ = bn_send(pair.app, $0.baseAddress, $0.count, pair.appRemote) }
    guard let keys = association.keyMaterial else { return }
    pair.sender = try SRTPSender(keys.profile, keys.client)
    pair.receiver = try SRTPReceiver(keys.profile, keys.server)
    isDone = true
  }

  private func check() {
    var writer = STUNWriter(.request, transaction: TransactionID(high: 1, low: session.raw), into: room)
    writer.addUsername(recipient: Array(local.ufrag.utf8), sender: Array("app".utf8))
    writer.addPriority(100)
    writer.addControlling(tieBreaker: 5)
    writer.addUseCandidate()
    writer.addIntegrity(IntegrityKey(password: local.password))
    writer.addFingerprint()
    let count = writer.finish() ?? 0
    _ = bn_send(pair.app, room.baseAddress, count, pair.appRemote)
  }

  /// The trunk answers: audio flows.
  func open() {
    // Digits as carriers send them (RFC 4733): a trunk without them is listened to for tones, about 1 µs a packet.
    let trunk = TrunkLegParameters(
      remote: SocketAddress(.loopback, pair.trunkPort), encoding: pair.trunkEncoding,
      payloadType: pair.trunkEncoding.row.payloadType, telephoneEventPayloadType: 101)
    test.plane.send(.setTrunk(session, trunk))
    test.plane.send(.lockWinner(session, leg))
    test.plane.send(.connect(session, leg, keepsFirstWords: false))
  }

  func close() { test.plane.send(.close(session)) }
}
