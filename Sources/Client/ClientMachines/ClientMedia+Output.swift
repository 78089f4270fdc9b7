public import TrunklineBytes
public import TrunklineRTP
public import TrunklineTURN

extension ClientMedia {
  /// The output of a call's media. Keep one and empty it by `removeAll`: then packets allocate nothing.
  public struct Output: Sendable {
    struct Datagram: Sendable {
      let octets: Range<Int>
      let local: SocketAddress
      let remote: SocketAddress
    }
    /// The payload of an authentic RTP packet.
    public struct Frame: Sendable {
      public var header: RTPHeader
      public var payload: [UInt8]
    }
    private var datagrams: [Datagram] = []
    /// The octets of all datagrams, one after another.
    private var octets: [UInt8] = []
    private var relayed: [(octets: Range<Int>, connection: Int)] = []
    /// Connections to TURN servers to open, by number; and those to close, once their data has been sent.
    public private(set) var connects: [(connection: Int, server: TURNServer)] = []
    public private(set) var disconnects: [Int] = []
    /// Only while `Configuration.codesAudio` is false.
    public var frames: [Frame] = []
    public var reports: [ClientCall.MediaReport] = []
    public init() {}

    public var hasDatagrams: Bool { !datagrams.isEmpty }

    /// The datagrams in the order of sending: octets, our address, the peer's.
    public func forEachDatagram(_ body: (UnsafeRawBufferPointer, SocketAddress, SocketAddress) -> Void) {
      octets.withUnsafeBytes { all in
        for datagram in datagrams {
          body(UnsafeRawBufferPointer(rebasing: all[datagram.octets]), datagram.local, datagram.remote)
        }
      }
    }

    /// Data for TURN servers: octets, the connection's number.
    public func forEachRelayed(_ body: (UnsafeRawBufferPointer, Int) -> Void) {
      octets.withUnsafeBytes { all in
        for message in relayed { body(UnsafeRawBufferPointer(rebasing: all[message.octets]), message.connection) }
      }
    }

    mutating func connect(_ number: Int, _ server: TURNServer) { connects.append((number, server)) }
    mutating func disconnect(_ number: Int) { disconnects.append(number) }
    mutating func relay(_ message: [UInt8], over number: Int) {
      relay(over: number) { octets in
        octets.append(contentsOf: message)
        return true
      }
    }
    /// - Parameter write: appends to the given array, or returns false.
    mutating func relay(over number: Int, _ write: (inout [UInt8]) -> Bool) {
      let start = octets.count
      if write(&octets) { relayed.append((start..<octets.count, number)) }
    }

    mutating func send(_ bytes: some Collection<UInt8>, from local: SocketAddress, to remote: SocketAddress) {
      let start = octets.count
      octets.append(contentsOf: bytes)
      datagrams.append(Datagram(octets: start..<octets.count, local: local, remote: remote))
    }

    /// Keeps the allocated memory.
    public mutating func removeAll() {
      datagrams.removeAll(keepingCapacity: true)
      octets.removeAll(keepingCapacity: true)
      relayed.removeAll(keepingCapacity: true)
      connects.removeAll(keepingCapacity: true)
      disconnects.removeAll(keepingCapacity: true)
      frames.removeAll(keepingCapacity: true)
      reports.removeAll(keepingCapacity: true)
    }
  }
}
