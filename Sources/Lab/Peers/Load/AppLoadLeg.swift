import AppProtocol
import Bytes
import ClientMachines
import DTLS
import Platform
import RTP

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

  /// - Parameter position: the frame of the sentence that it begins with.
  init(
    _ client: LoadOptions.Client, position: Int, address: IPAddress, identity: DTLSIdentity, relays: Bool, random: RandomSource
  ) throws {
    self.position = position
    let codec: AudioEncoding = relays ? .pcmu : .opus
    heard = StreamCount(clockRateHz: Int64(codec.clockRateHz))
    socket = try UDPSocket(bind: SocketAddress(address, 0))
    guard
      var configuration = ClientMedia.Configuration(
        localAddresses: [socket.localAddress], identity: identity, codecs: [codec])
    else {
      throw PeerSetupError(description: "no usable certificate")
    }
    configuration.codesAudio = false
    session = client.session(random)
    media = ClientMedia(configuration: configuration, random: random)
  }

  /// The next 20 ms; false if nothing was sent.
  func speak(_ frames: [[UInt8]]) -> Bool {
    guard isConnected, !frames.isEmpty else { return false }
    var output = ClientMedia.Output()
    media.send(encoded: frames[position % frames.count], into: &output)
    guard output.hasDatagrams else { return false }
    position += 1
    transmit(output)
    return true
  }

  func transmit(_ output: ClientMedia.Output) {
    output.forEachDatagram { bytes, _, remote in if (try? socket.send(Array(bytes), to: remote)) != true { unsent += 1 } }
  }
}

extension LoadOptions.Client {
  func session(_ random: RandomSource) -> ClientSession {
    ClientSession(
      configuration: .init(token: token, device: Hello.Device(id: device, platform: "linux", sdk: "trunkline-load")),
      random: random)
  }
}
