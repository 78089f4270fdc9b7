// What the SDK uses of Network.
public import Dispatch
public import Foundation
public import Security

/// developer.apple.com/documentation/network/nwpath
public struct NWPath: Equatable, Sendable {
  public enum Status: Sendable { case satisfied, unsatisfied, requiresConnection }
  public let status: Status
  let number: Int
  public init(status: Status, number: Int) { (self.status, self.number) = (status, number) }
}

/// developer.apple.com/documentation/network/nwpathmonitor
public final class NWPathMonitor: @unchecked Sendable {
  public init() {}
  /// developer.apple.com/documentation/network/nwpathmonitor/pathupdatehandler
  public var pathUpdateHandler: (@Sendable (NWPath) -> Void)?
  public func start(queue: DispatchQueue) { Self.last = self }
  public func cancel() { Self.last = nil }

  // for the programs of the suite, which have one thread
  nonisolated(unsafe) public private(set) static var last: NWPathMonitor?
  public func tell(_ path: NWPath) { pathUpdateHandler?(path) }
}

/// developer.apple.com/documentation/network/nwerror
public struct NWError: Error, CustomStringConvertible {
  public let description: String
  public init(_ description: String) { self.description = description }
}

/// developer.apple.com/documentation/network/nwendpoint
public enum NWEndpoint {
  public struct Host {
    let name: String
    public init(_ name: String) { self.name = name }
  }
  public struct Port {
    public let rawValue: UInt16
    public init?(rawValue: UInt16) { self.rawValue = rawValue }
  }
}

/// developer.apple.com/documentation/network/nwprotocoltcp
public enum NWProtocolTCP {
  public final class Options {
    public var noDelay = false
    public init() {}
  }
}

/// developer.apple.com/documentation/network/nwprotocoltls
public enum NWProtocolTLS {
  public final class Options {
    public let securityProtocolOptions = sec_protocol_options_t()
    public init() {}
  }
}

/// developer.apple.com/documentation/network/nwparameters
public final class NWParameters {
  fileprivate let text: String
  public init(tls: NWProtocolTLS.Options?, tcp: NWProtocolTCP.Options) {
    text = (tls.map { "TLS for \($0.securityProtocolOptions.serverName)" } ?? "TCP") + (tcp.noDelay ? ", no delay" : "")
  }
  private init(_ text: String) { self.text = text }
  public static var udp: NWParameters { NWParameters("UDP") }
}

/// developer.apple.com/documentation/network/nwconnection
public final class NWConnection: @unchecked Sendable {
  public enum State: Sendable {
    case setup, preparing, ready, cancelled
    case waiting(NWError), failed(NWError)
  }
  public final class ContentContext: Sendable { public static let defaultMessage = ContentContext() }
  public enum SendCompletion: Sendable { case contentProcessed(@Sendable (NWError?) -> Void) }
  public typealias Receiver = @Sendable (Data?, ContentContext?, Bool, NWError?) -> Void

  public var stateUpdateHandler: (@Sendable (State) -> Void)?
  public init(host: NWEndpoint.Host, port: NWEndpoint.Port, using parameters: NWParameters) {
    text = "\(parameters.text) to \(host.name):\(port.rawValue)"
  }
  public func start(queue: DispatchQueue) { Self.last = self }
  public func cancel() { cancels += 1 }
  public func send(
    content: Data?, contentContext: ContentContext = .defaultMessage, isComplete: Bool = true, completion: SendCompletion
  ) {
    if case .contentProcessed(let done) = completion { sends.append((content.map { [UInt8]($0) } ?? [], done)) }
  }
  public func receive(minimumIncompleteLength: Int, maximumLength: Int, completion: @escaping Receiver) { receiver = completion }
  public func receiveMessage(completion: @escaping Receiver) { receiver = completion }

  // for the programs of the suite, which have one thread
  nonisolated(unsafe) public private(set) static var last: NWConnection?
  public let text: String
  public private(set) var cancels = 0
  public private(set) var sends: [(bytes: [UInt8], done: @Sendable (NWError?) -> Void)] = []
  private var receiver: Receiver?
  public func tell(_ state: State) { stateUpdateHandler?(state) }
  /// False: nobody asked for more.
  public func give(_ bytes: [UInt8]?, isLast: Bool = false) -> Bool {
    guard let receiver else { return false }
    self.receiver = nil
    receiver(bytes.map { Data($0) }, nil, isLast, nil)
    return true
  }
}
