// What the SDK uses of Network.
public import Dispatch

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
