import Testing
import TrunklineBytes
import TrunklineRTP
import TrunklineSDP
import TrunklineSRTP

@testable import TrunklineClientMachines

// What the parts of a call's media get: an agreed description, keys, packets.

let phoneAddress = SocketAddress(IPAddress(10, 0, 0, 2), 4_000)
let gatewayAddress = SocketAddress(IPAddress(198, 51, 100, 7), 40_000)

/// A gateway's description with this codec.
func agreed(_ codec: AudioEncoding) throws -> AppMedia {
  let fingerprint = try #require(FingerprintAttribute(.sha256, [UInt8](repeating: 1, count: 32)))
  func endpoint(_ name: String, _ address: SocketAddress) -> SecureEndpoint {
    SecureEndpoint(
      ufrag: name, password: "\(name)password123456789", fingerprint: fingerprint, candidates: [address], ssrc: 7,
      codecs: [codec])
  }
  var gateway = AppNegotiation(.gateway, endpoint: endpoint("gateway1", gatewayAddress), sessionID: 1)
  var app = AppNegotiation(.app, endpoint: endpoint("phone123", phoneAddress), sessionID: 2)
  return try app.answer(to: gateway.makeOffer()).media
}

func keyMaterial(_ seed: UInt8, saltBytes: Int? = nil) -> SRTPKeyMaterial {
  let profile = SRTPProfile.aeadAES128GCM
  func master(_ base: UInt8) -> SRTPMasterKey {
    SRTPMasterKey(
      key: (0..<profile.keyBytes).map { base &+ UInt8($0) },
      salt: (0..<(saltBytes ?? profile.saltBytes)).map { base &+ 100 &+ UInt8($0) })
  }
  return SRTPKeyMaterial(profile: profile, client: master(seed), server: master(seed &+ 50))
}

func header(_ type: UInt8, _ sequence: UInt16, at timestamp: UInt32 = 0) -> RTPHeader {
  RTPHeader(
    payloadType: type, marker: false, sequence: SequenceNumber(raw: sequence), timestamp: RTPTimestamp(raw: timestamp),
    ssrc: SSRC(raw: 9))
}

/// A clear packet of the gateway with room for the protection.
func room(_ sequence: UInt8) -> [UInt8] {
  [0x80, 111, 0, sequence, 0, 0, 0, 0, 0, 0, 0, 9] + [UInt8](repeating: 5, count: 40) + [UInt8](repeating: 0, count: 32)
}
