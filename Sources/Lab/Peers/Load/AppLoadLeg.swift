import TrunklineAppProtocol
import TrunklineBytes
import TrunklineClientMachines
import TrunklineDTLS
import TrunklinePlatform
import TrunklineRTP

/// The app's half of one call: a session, another one if another node has the call, a call, its media and one socket.
final class AppLoadLeg {
  let socket: UDPSocket
  var session: ClientSession
  /// The session at the node of the call, if that is another node than the session's.
  var further: ClientSession?
  var call: ClientCall?
  var media: ClientMedia
  var tags: [Identifier: ClientCall.RequestTag] = [:]
  var isOnline = false
  var answerAt: Instant?
  var isConnected = false
  var unsent: UInt64 = 0
  var received: StreamCount
  private var position: Int

  /// - Parameter position: the frame at which the sentence starts.
  init(
    _ client: LoadOptions.Client, position: Int, address: IPAddress, identity: DTLSIdentity, relays: Bool, isWide: Bool,
    random: RandomSource
  ) throws {
    self.position = position
    let codec: AudioEncoding = relays ? .pcmu : .opus
    received = StreamCount(clockRateHz: Int64(codec.clockRateHz))
    socket = try UDPSocket(bind: SocketAddress(address, 0))
    guard
      var configuration = ClientMedia.Configuration(
        localAddresses: [socket.localAddress], identity: identity, codecs: [codec])
    else {
      throw PeerSetupError(description: "no usable certificate")
    }
    // Its sentences are already coded.
    (configuration.codesAudio, configuration.band) = (false, isWide ? .wideband : .narrowband)
    session = client.session(random)
    media = ClientMedia(configuration: configuration, random: random)
  }

  /// Sends the next 20 ms; false if nothing was sent.
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
  /// - Parameter wake: connects to the node of this wake, for its call.
  func session(_ random: RandomSource, wake: CallWake? = nil) -> ClientSession {
    var configuration = ClientSession.Configuration(
      token: token, device: Hello.Device(id: device, platform: "linux", sdk: "trunkline-load"))
    configuration.gateway = url
    if let wake { (configuration.wake, configuration.gateway) = (Redacted(wake.wake), wake.gw) }
    return ClientSession(configuration: configuration, random: random)
  }
}
