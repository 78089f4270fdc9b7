import TrunklineAppProtocol
import TrunklineBytes
import TrunklineClientMachines
import TrunklineDTLS
import TrunklinePlatform

/// One phone of a fleet: the SDK's machine, and the state of its shell.
final class FleetPhone {
  let number: Int
  let member: PhoneFleet.Member
  var machine: PhoneMachine
  /// The machine's next deadline, as of its last step.
  var due: Instant?
  var waiting: [PhoneMachine.Input] = []
  var isRunning = false
  var actions = 0
  /// Requests to the system that are not completed.
  var open: [SystemActionID: SystemRequest] = [:]
  var calls: [Identifier: FleetCall] = [:]
  /// Sessions at further nodes, by their socket here.
  var further: [Int: Int] = [:]
  var answerAt: [Identifier: Instant] = [:]
  var isOnline = false
  /// Events reported for each live call.
  var reported: [Identifier: (isRinging: Bool, isConnected: Bool)] = [:]

  init(_ number: Int, _ member: PhoneFleet.Member, _ random: RandomSource) {
    (self.number, self.member) = (number, member)
    machine = PhoneMachine(
      .init(device: Hello.Device(id: member.device, platform: "linux", sdk: "trunkline-phones")), random: random)
  }
}

/// The media of one call.
final class FleetCall {
  let socket: UDPSocket
  var media: ClientMedia
  var position: Int
  var heardAt: Instant?

  init(_ position: Int, address: IPAddress, identity: DTLSIdentity, random: RandomSource) throws {
    self.position = position
    socket = try UDPSocket(bind: SocketAddress(address, 0))
    guard
      var configuration = ClientMedia.Configuration(localAddresses: [socket.localAddress], identity: identity, codecs: [.pcmu])
    else { throw PeerSetupError(description: "no usable certificate") }
    (configuration.codesAudio, configuration.band) = (false, .narrowband)
    media = ClientMedia(configuration: configuration, random: random)
  }

  func transmit(_ output: ClientMedia.Output) {
    output.forEachDatagram { bytes, _, remote in _ = try? socket.send(bytes, to: remote) }
  }
}
