import Configuration
import Foundation
import Glibc
import Logging
import Synchronization
import TrunklinePlatform
import TrunklineSIPTransport

/// The thread `certificates` reads certificate files. They may be on a hung disk, so threads of calls do not read them.
///
/// Every 5 s it checks whether a file was replaced, so that a new certificate is used without a signal. At the start, with new
/// settings, with a changed file and once a day it reads when each certificate expires, and logs it in the last 14 days.
final class CertificateWatch: Sendable {
  static let interval = Duration.seconds(5)
  private static let rounds = 86_400 / 5
  static let soon: Int64 = 14 * 86_400

  private let wake: EventDescriptor
  private let state: Mutex<(files: [CertificateFile], paths: [String], isNew: Bool, isOver: Bool)>
  private let expiries = Mutex<[CertificateFile: Int64]>([:])
  private let thread = Mutex<NamedThread?>(nil)

  init(_ settings: Settings) throws(SystemError) {
    wake = try EventDescriptor()
    state = Mutex((settings.certificates, settings.certificatePaths, true, false))
  }

  /// `changed` and `daily` are called on the thread.
  func start(logger: Logger, changed: @escaping @Sendable () -> Void, daily: @escaping @Sendable () -> Void) throws(SystemError) {
    let running = try NamedThread.start(name: "certificates", logger: logger) { [self] in run(logger, changed, daily) }
    thread.withLock { $0 = running }
  }

  /// Any thread: the files of new settings.
  func replace(_ settings: Settings) {
    state.withLock { ($0.files, $0.paths, $0.isNew) = (settings.certificates, settings.certificatePaths, true) }
    wake.signal()
  }

  func stop() {
    state.withLock { $0.isOver = true }
    wake.signal()
    thread.withLock { $0 }?.join()
  }

  var metrics: [MetricFamily] {
    [
      MetricFamily(
        name: "trunkline_certificate_expires_seconds", help: "When a gateway certificate expires, in seconds since 1970.",
        kind: .gauge, labelNames: ["use", "trunk"]
      ) { [self] in
        let known = expiries.withLock { $0 }
        return Self.earliest(state.withLock { $0.files }, known).map { MetricSample($0.labels, .integer($0.expires)) }
      }
    ]
  }

  /// One row for each use and trunk, with the certificate that expires first.
  static func earliest(_ files: [CertificateFile], _ known: [CertificateFile: Int64]) -> [(labels: [String], expires: Int64)] {
    var rows: [(labels: [String], expires: Int64)] = []
    for file in files {
      guard let expires = known[file] else { continue }
      let labels = [file.use.rawValue, file.trunk]
      if let index = rows.firstIndex(where: { $0.labels == labels }) {
        rows[index].expires = min(rows[index].expires, expires)
      } else {
        rows.append((labels, expires))
      }
    }
    return rows
  }

  private func run(_ logger: Logger, _ changed: () -> Void, _ daily: () -> Void) {
    let heartbeat = Heartbeat()
    defer { heartbeat.end() }
    var stamps = FileStamps(state.withLock { $0.paths })
    var round = 0
    while true {
      let (files, paths, isNew, isOver) = state.withLock { state in
        defer { state.isNew = false }
        return state
      }
      if isOver { return }
      let isChanged = stamps.changed(paths)
      if isChanged { changed() }
      let isDaily = round == Self.rounds
      if isDaily { daily() }
      if isNew || isChanged || isDaily { look(at: files, logger) }
      round = isDaily ? 0 : round + 1
      heartbeat.waits()
      if wake.wait(milliseconds: Int32(Self.interval.nanoseconds / 1_000_000)) { wake.clear() }
      heartbeat.woke()
    }
  }

  private func look(at files: [CertificateFile], _ logger: Logger) {
    let now = WallClock.nowMilliseconds() / 1_000
    for file in files {
      // The user of an unreadable file reports it.
      guard let expires = file.expires() else { continue }
      expiries.withLock { $0[file] = expires }
      guard expires - now < Self.soon else { continue }
      let date = Date(timeIntervalSince1970: Double(expires)).formatted(.iso8601)
      var metadata: Logger.Metadata = [
        "use": "\(file.use.rawValue)", "file": "\(file.path)", "expires": "\(date)",
        "do": "renew it and replace the file",
      ]
      if !file.trunk.isEmpty { metadata["trunk"] = "\(file.trunk)" }
      if expires <= now {
        logger.error("a certificate has expired", metadata: metadata)
      } else {
        logger.warning("a certificate expires soon", metadata: metadata)
      }
    }
  }
}

/// A PEM file with a certificate of ours and its chain to the root.
struct CertificateFile: Hashable, Sendable {
  enum Use: String, Sendable { case app, admin, sip, trunk }
  var use: Use
  /// Empty unless it is only for one trunk.
  var trunk = ""
  var path: String

  /// When the first of its certificates expires, in seconds since 1970; nil if there is none.
  func expires() -> Int64? { PEMFile(path: path).certificates().map(\.expires).min() }
}

/// Modification times of files.
struct FileStamps {
  private struct Stamp: Equatable {
    var inode: UInt64
    var seconds: Int
    var nanoseconds: Int
  }
  private var stamps: [String: Stamp]

  init(_ paths: [String]) { stamps = Self.read(paths) }

  /// True if a file was replaced since the last call. A file that is missing for the moment is no change.
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
  /// Every trunk whose server may be contacted over TLS, as DNS or the operator states.
  var clientTLS: [String: TLSClientSettings] {
    var out: [String: TLSClientSettings] = [:]
    for trunk in trunks where !listen.sipTLS.isEmpty {
      guard let uri = trunk.uri, uri.transport == nil || uri.transport == .tls else { continue }
      out[trunk.name] = TLSClientSettings(
        identity: trunk.tls, host: uri.host, names: trunk.expectedNames, verifies: trunk.verifiesCertificate)
    }
    return out
  }

  /// Every certificate that we show, except those for pushes (`PushComponent`).
  var certificates: [CertificateFile] {
    var out: [CertificateFile] = []
    if let path = listen.appTLS?.certificate { out.append(CertificateFile(use: .app, path: path)) }
    if let path = listen.adminTLS?.certificate { out.append(CertificateFile(use: .admin, path: path)) }
    guard !listen.sipTLS.isEmpty else { return out }
    for files in sipIdentities { if let path = files.certificate { out.append(CertificateFile(use: .sip, path: path)) } }
    for trunk in trunks {
      if let path = trunk.tls.certificate { out.append(CertificateFile(use: .trunk, trunk: trunk.name, path: path)) }
    }
    return out
  }

  /// The SIP listener's certificates: the default one, and those for other names.
  private var sipIdentities: [TLSFiles] { listen.sipServer.map { [$0.identity] + $0.others } ?? [] }

  /// The files that our ports and SIP over TLS use.
  var certificatePaths: [String] {
    var paths: [String?] = [
      listen.appTLS?.certificate, listen.appTLS?.key, listen.adminTLS?.certificate, listen.adminTLS?.key,
    ]
    guard !listen.sipTLS.isEmpty else { return paths.compactMap(\.self) }
    for files in sipIdentities { paths += [files.certificate, files.key, files.authorities] }
    for trunk in trunks { paths += [trunk.tls.certificate, trunk.tls.key, trunk.tls.authorities] }
    return paths.compactMap(\.self)
  }
}
