import AppProtocol
import Bytes
import DTLS
import Platform
import TrunklineClient

/// The app's half of one call: a session, a call, its media and one socket.
final class AppLoadLeg {
  let socket: UDPSocket
  var session: ClientSession
  var call: ClientCall?
  var media: ClientMedia
  var tags: [Identifier: ClientCall.RequestTag] = [:]
  var isOnline = false
  var answerAt: Instant?
  var isConnected = false
  var unsent: UInt64 = 0
  var heard: StreamCount
  private var position: Int

  init(_ client: LoadOptions.Client, number: Int, address: IPAddress, identity: DTLSIdentity, relays: Bool, random: RandomSource)
    throws
  {
    heard = StreamCount(clockRateHz: relays ? 8_000 : 48_000)
    socket = try UDPSocket(bind: SocketAddress(address, 0))
    guard
      var configuration = ClientMedia.Configuration(
        localAddresses: [socket.localAddress], identity: identity, codecs: [relays ? .pcmu : .opus])
    else {
      throw AppPhone.SetupError(description: "no usable certificate")
    }
    configuration.codesAudio = false
    session = ClientSession(
      configuration: .init(
        token: client.token, device: Hello.Device(id: client.device, platform: "linux", sdk: "trunkline-load")),
      random: random)
    media = ClientMedia(configuration: configuration, random: random)
    position = number * 53
  }

  /// The next 20 ms; returns which frame of the sentence it was, nil if nothing was sent.
  func speak(_ frames: [[UInt8]]) -> Int? {
    guard isConnected, !frames.isEmpty else { return nil }
    let frame = position % frames.count
    var output = ClientMedia.Output()
    media.send(encoded: frames[frame], into: &output)
    guard !output.datagrams.isEmpty else { return nil }
    position += 1
    transmit(output)
    return frame
  }

  func transmit(_ output: ClientMedia.Output) {
    for datagram in output.datagrams where (try? socket.send(datagram.bytes, to: datagram.remote)) != true { unsent += 1 }
  }
}
