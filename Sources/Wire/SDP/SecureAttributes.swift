import TrunklineBytes

/// A certificate's hash (RFC 8122 §5).
public struct FingerprintAttribute: Hashable, Sendable {
  public enum Algorithm: String, Hashable, Sendable, CaseIterable {
    case sha256 = "sha-256"
    case sha384 = "sha-384"
    case sha512 = "sha-512"

    public var byteCount: Int {
      switch self {
      case .sha256: 32
      case .sha384: 48
      case .sha512: 64
      }
    }
  }

  public let algorithm: Algorithm
  public let bytes: [UInt8]

  /// nil if the length is not the algorithm's.
  public init?(_ algorithm: Algorithm, _ bytes: [UInt8]) {
    guard bytes.count == algorithm.byteCount else { return nil }
    (self.algorithm, self.bytes) = (algorithm, bytes)
  }

  /// Reads `sha-256 AB:CD:…`; nil for another algorithm or a malformed hash. Digits in either case.
  public init?(_ value: String) {
    let parts = value.split(separator: " ")
    guard parts.count == 2, let algorithm = Algorithm(rawValue: parts[0].lowercased()) else { return nil }
    let pairs = parts[1].split(separator: ":", omittingEmptySubsequences: false)
    guard pairs.count == algorithm.byteCount, pairs.allSatisfy({ $0.utf8.count == 2 }), let bytes = hexBytes(pairs.joined())
    else { return nil }
    self.init(algorithm, bytes)
  }

  /// As written in SDP: upper case, colons.
  public var text: String {
    "\(algorithm.rawValue) " + bytes.map { hexString(CollectionOfOne($0)).uppercased() }.joined(separator: ":")
  }
}

/// Who starts the DTLS handshake (RFC 4145 §4, RFC 5763 §5).
public enum SetupRole: String, Hashable, Sendable { case active, passive, actpass, holdconn }

/// `a=candidate` (RFC 8839 §5.1).
public struct CandidateAttribute: Hashable, Sendable {
  public enum Kind: String, Hashable, Sendable { case host, srflx, prflx, relay }

  public var foundation: String
  public var component: Int
  /// In lower case; `udp` is the only one used.
  public var transport: String
  public var priority: UInt32
  /// nil for a host name, such as an mDNS one.
  public var address: IPAddress?
  public var port: UInt16
  public var kind: Kind

  /// A host candidate for component 1; `index` lowers the priority (RFC 8445 §5.1.2.1).
  public init(host: SocketAddress, index: Int) {
    foundation = String(index + 1)
    component = 1
    transport = "udp"
    priority = 126 << 24 | UInt32(clamping: 65_535 - index) << 8 | 255
    (address, port, kind) = (host.ip, host.port, .host)
  }

  /// Reads the attribute's value, with or without the `candidate:` that browsers put before it in their API; nil if malformed.
  public init?(_ value: some StringProtocol) {
    let value = value.hasPrefix("candidate:") ? value.dropFirst(10) : value[...]
    guard value.utf8.count <= Limits.lineBytes else { return nil }
    let parts = value.split(separator: " ", maxSplits: 8)
    guard parts.count >= 8, (1...32).contains(parts[0].utf8.count), parts[6] == "typ",
      let kind = Kind(rawValue: String(parts[7])), let component: Int = number(parts[1]), (1...256).contains(component),
      let priority: UInt32 = number(parts[3]), let port: UInt16 = number(parts[5])
    else { return nil }
    (foundation, self.component, transport) = (String(parts[0]), component, parts[2].lowercased())
    (self.priority, address, self.port, self.kind) = (priority, IPAddress(parts[4]), port, kind)
  }

  /// The attribute's value; a name that was read is written as 0.0.0.0.
  public var text: String {
    "\(foundation) \(component) \(transport) \(priority) \(address ?? .any) \(port) typ \(kind.rawValue)"
  }
}

/// `ice-ufrag` and `ice-pwd` (RFC 8839 §5.4), checked for length and alphabet.
public struct ICECredentials: Hashable, Sendable {
  public let ufrag: String
  public let password: String

  public init?(ufrag: String, password: String) {
    func isICE(_ text: String) -> Bool {
      text.utf8.allSatisfy { (48...57).contains($0) || (65...90).contains($0) || (97...122).contains($0) || $0 == 43 || $0 == 47 }
    }
    guard Limits.ufragLength.contains(ufrag.utf8.count), Limits.passwordLength.contains(password.utf8.count), isICE(ufrag),
      isICE(password)
    else { return nil }
    (self.ufrag, self.password) = (ufrag, password)
  }
}
