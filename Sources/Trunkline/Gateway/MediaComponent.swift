import CallFlow
import Configuration
import Control
import Logging
import MediaThreads
import TrunklineBytes
import TrunklineDTLS
import TrunklineMediaSession
import TrunklinePlatform

/// The media threads, and the addresses of the present network plan on which calls get their ports.
final class MediaComponent: MediaPlaneOutput, Sendable {
  let plane: MediaPlane
  private let network: NetworkComponent

  init(_ settings: Settings, network: NetworkComponent, inbox: Inbox, logger: Logger) throws {
    self.network = network
    plane = try MediaPlane(configuration: settings.mediaPlane(network.plan), identity: DTLSIdentity(), logger: logger) {
      [inbox] event in
      inbox.post(.media(event))
    }
  }

  func send(_ command: MediaCommand) -> Bool {
    // `send` is also false for a session that has ended, which is no loss. Only control sends, so the count shows a loss.
    let lost = plane.metrics.undelivered.value
    return plane.send(command, gathers: true) || plane.metrics.undelivered.value == lost
  }

  func reserve(_ request: MediaRequest) throws -> MediaReservation {
    do throws(MediaReservationError) {
      return try plane.reserve(
        session: request.session, user: request.user, others: request.others, toward: request.toward,
        asked: request.asked.map { ($0.local.ip, $0.remote.ip) }, gathers: true)
    } catch {
      if case .overloaded = error { throw MediaOverload("\(error)") }
      throw error
    }
  }

  func move(_ request: MediaRequest) throws -> SocketAddress? {
    guard let trunk = request.toward else { return nil }
    let plan = network.plan
    return try plane.move(session: request.session, toward: trunk) { plan.isHere($0) }
  }

  var shortage: MediaShortage? {
    switch plane.shortage {
    case .overloaded: .cpu
    case .portsExhausted: .ports
    default: nil
    }
  }

  func wake() { plane.wake() }
}
