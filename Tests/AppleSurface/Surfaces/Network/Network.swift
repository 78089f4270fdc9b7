// The part of Network that the SDK uses.
public import Dispatch
public import Foundation
public import Security

/// developer.apple.com/documentation/network/nwinterface
public struct NWInterface: Sendable {
  public enum InterfaceType: Sendable { case other, wifi, cellular, wiredEthernet, loopback }
}

/// developer.apple.com/documentation/network/nwpath
public struct NWPath: Equatable, Sendable {
  public enum Status: Sendable { case satisfied, unsatisfied, requiresConnection }
  public let status: Status
  let number: Int
  let interface: NWInterface.InterfaceType
  public init(status: Status, number: Int, interface: NWInterface.InterfaceType = .wifi) {
    (self.status, self.number, self.interface) = (status, number, interface)
  }
  public func usesInterfaceType(_ type: NWInterface.InterfaceType) -> Bool { interface == type }
}

/// developer.apple.com/documentation/network/nwpathmonitor
public final class NWPathMonitor: @unchecked Sendable {
  public init() {}
  /// developer.apple.com/documentation/network/nwpathmonitor/pathupdatehandler
  public var pathUpdateHandler: (@Sendable (NWPath) -> Void)?
  public var currentPath: NWPath { Self.path }
  public func start(queue: DispatchQueue) { Self.last = self }
  public func cancel() { Self.last = nil }

  // for the programs of the suite, which have one thread
  nonisolated(unsafe) public private(set) static var last: NWPathMonitor?
  nonisolated(unsafe) public static var path = NWPath(status: .satisfied, number: 0)
  public func tell(_ path: NWPath) { pathUpdateHandler?(path) }
}

/// developer.apple.com/documentation/network/nwerror
public struct NWError: Error, CustomStringConvertible {
  public let description: String
  public init(_ description: String) { self.description = description }
}

/// developer.apple.com/documentation/network/nwendpoint
public enum NWEndpoint {
  case url(URL)
  fileprivate var text: String {
    switch self {
    case .url(let url): url.absoluteString
    }
  }
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
  public final class Options: NWProtocolOptions {
    public var noDelay = false
    public override init() {}
  }
}

/// developer.apple.com/documentation/network/nwprotocoltls
public enum NWProtocolTLS {
  public final class Options: NWProtocolOptions {
    public let securityProtocolOptions = sec_protocol_options_t()
    public override init() {}
  }
}

/// developer.apple.com/documentation/network/nwprotocoloptions
public class NWProtocolOptions {}
/// developer.apple.com/documentation/network/nwprotocolmetadata
public class NWProtocolMetadata: @unchecked Sendable {}
/// developer.apple.com/documentation/network/nwprotocoldefinition
public final class NWProtocolDefinition: Sendable {}

/// developer.apple.com/documentation/network/nwprotocolwebsocket
public enum NWProtocolWebSocket {
  public static let definition = NWProtocolDefinition()
  public enum Opcode: Sendable { case cont, text, binary, close, ping, pong }
  public enum CloseCode: Sendable {
    public enum Defined: UInt16, Sendable {
      case normalClosure = 1000, goingAway, protocolError, unsupportedData
      case noStatusReceived = 1005, abnormalClosure, invalidFramePayloadData, policyViolation, messageTooBig
      case mandatoryExtension, internalServerError
    }
    case protocolCode(Defined), applicationCode(UInt16), privateCode(UInt16)
  }
  public final class Options: NWProtocolOptions {
    public var autoReplyPing = false
    public var maximumMessageSize = 0
    public private(set) var subprotocols: [String] = []
    public override init() {}
    public func setSubprotocols(_ subprotocols: [String]) { self.subprotocols = subprotocols }
  }
  public final class Metadata: NWProtocolMetadata, @unchecked Sendable {
    public let opcode: Opcode
    public var closeCode = CloseCode.protocolCode(.noStatusReceived)
    public init(opcode: Opcode) { self.opcode = opcode }
  }
}

/// developer.apple.com/documentation/network/nwparameters
public final class NWParameters {
  fileprivate let text: String
  public final class ProtocolStack { public var applicationProtocols: [NWProtocolOptions] = [] }
  public let defaultProtocolStack = ProtocolStack()
  public var requiredInterfaceType = NWInterface.InterfaceType.other
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
  public final class ContentContext: Sendable {
    public static let defaultMessage = ContentContext(identifier: "default")
    let metadata: [NWProtocolMetadata]
    public init(identifier: String, metadata: [NWProtocolMetadata]? = nil) { self.metadata = metadata ?? [] }
    public func protocolMetadata(definition: NWProtocolDefinition) -> NWProtocolMetadata? { metadata.first }
  }
  public enum SendCompletion: Sendable { case contentProcessed(@Sendable (NWError?) -> Void) }
  public typealias Receiver = @Sendable (Data?, ContentContext?, Bool, NWError?) -> Void

  public var stateUpdateHandler: (@Sendable (State) -> Void)?
  public init(host: NWEndpoint.Host, port: NWEndpoint.Port, using parameters: NWParameters) {
    text = "\(parameters.text) to \(host.name):\(port.rawValue)"
  }
  public init(to endpoint: NWEndpoint, using parameters: NWParameters) {
    let webSocket = parameters.defaultProtocolStack.applicationProtocols.first as? NWProtocolWebSocket.Options
    text =
      "\(webSocket?.subprotocols ?? []) over \(parameters.requiredInterfaceType), \(parameters.text), to "
      + endpoint.text
  }
  public func start(queue: DispatchQueue) { (Self.last, self.queue) = (self, queue) }
  public func cancel() { cancels += 1 }
  public func send(
    content: Data?, contentContext: ContentContext = .defaultMessage, isComplete: Bool = true, completion: SendCompletion
  ) {
    guard case .contentProcessed(let done) = completion else { return }
    sends.append((content.map { [UInt8]($0) } ?? [], done))
    if let message = contentContext.metadata.first as? NWProtocolWebSocket.Metadata { frames.append(message) }
  }
  public func receive(minimumIncompleteLength: Int, maximumLength: Int, completion: @escaping Receiver) { receiver = completion }
  public func receiveMessage(completion: @escaping Receiver) { receiver = completion }

  // for the programs of the suite, which have one thread
  nonisolated(unsafe) public private(set) static var last: NWConnection?
  public let text: String
  public private(set) var queue: DispatchQueue?
  /// Metadata of the WebSocket messages that were sent.
  public private(set) var frames: [NWProtocolWebSocket.Metadata] = []
  public private(set) var cancels = 0
  public private(set) var sends: [(bytes: [UInt8], done: @Sendable (NWError?) -> Void)] = []
  private var receiver: Receiver?
  public func tell(_ state: State) { stateUpdateHandler?(state) }
  /// False: no receive was pending.
  public func give(_ bytes: [UInt8]?, isLast: Bool = false, _ metadata: NWProtocolMetadata? = nil) -> Bool {
    guard let receiver else { return false }
    self.receiver = nil
    receiver(bytes.map { Data($0) }, metadata.map { ContentContext(identifier: "", metadata: [$0]) }, isLast, nil)
    return true
  }
}
