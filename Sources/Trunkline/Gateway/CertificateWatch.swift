import Configuration
import Glibc
import SIPTransport

/// Modification times of certificate files.
struct CertificateWatch {
  static let interval = Duration.seconds(5)
  private struct Stamp: Equatable {
    var inode: UInt64
    var seconds: Int
    var nanoseconds: Int
  }
  private var stamps: [String: Stamp]

  init(_ paths: [String]) { stamps = Self.read(paths) }

  /// True if a file is another one than when it was last asked. A file that is gone for the moment is no change.
  mutating func changed(_ paths: [String]) -> Bool {
    let now = Self.read(paths)
    let isChanged = now.contains { path, stamp in stamps[path].map { $0 != stamp } ?? false }
    stamps.merge(now) { $1 }
    return isChanged
  }

  private static func read(_ paths: [String]) -> [String: Stamp] {
    var out: [String: Stamp] = [:]
    for path in paths {
      var info = stat()
      guard stat(path, &info) == 0 else { continue }
      out[path] = Stamp(inode: UInt64(info.st_ino), seconds: info.st_mtim.tv_sec, nanoseconds: info.st_mtim.tv_nsec)
    }
    return out
  }
}

extension Settings {
  var serverTLS: TLSServerSettings? {
    listen.sipCertificates.map { files in
      let clients: TLSServerSettings.Clients =
        switch files.clients {
        case .off: .off
        case .optional: .optional
        case .required: .required
        }
      return TLSServerSettings(
        identity: TLSIdentity(certificate: files.own.certificate, key: files.own.key, authorities: files.authorities),
        clients: clients)
    }
  }

  /// Every trunk that DNS or the operator may send over TLS.
  var clientTLS: [String: TLSClientSettings] {
    var out: [String: TLSClientSettings] = [:]
    for trunk in trunks where !listen.sipTLS.isEmpty {
      guard let uri = trunk.uri, uri.transport == nil || uri.transport == .tls else { continue }
      let identity = TLSIdentity(
        certificate: trunk.tls.own?.certificate, key: trunk.tls.own?.key, authorities: trunk.tls.authorities)
      out[trunk.name] = TLSClientSettings(identity: identity, host: uri.host, verifies: trunk.tls.verifies)
    }
    return out
  }

  var certificatePaths: [String] {
    var paths: [String?] = [
      listen.sipCertificates?.own.certificate, listen.sipCertificates?.own.key, listen.sipCertificates?.authorities,
    ]
    for trunk in trunks { paths += [trunk.tls.own?.certificate, trunk.tls.own?.key, trunk.tls.authorities] }
    return paths.compactMap(\.self)
  }
}
