/// The folder tree as a table: folders from the top down, and the siblings that may know each other.
enum ImportRule {
  static let order = ["CLibraries", "Wire", "Media", "Calls", "Platform", "Runtime", "Trunkline", "Lab"]

  /// Siblings by importing module. `Bytes` is the ground of Wire. Modules of Runtime never import each other, but files that one
  /// of them writes and others read (EventJournal), lines in them (LineFiles), and the ground of AppServer (WebServer).
  static let siblings: [String: Set<String>] = [
    "STUN": ["Bytes"], "RTP": ["Bytes"], "SDP": ["Bytes", "RTP"], "SIP": ["Bytes"], "AppProtocol": ["Bytes"],
    "JSONWebToken": ["Bytes"],
    "DTLS": ["SRTP"],
    "MediaSession": ["SRTP", "ICE", "JitterBuffer", "AudioCodecs"],
    "Trunking": ["SIPDialogs"],
    "Devices": ["AppSessions", "PushPolicy"],
    "CallModel": ["SIPDialogs", "Trunking", "AppSessions", "PushPolicy", "Devices"],
    "CallFlow": ["CallModel", "SIPDialogs", "Trunking", "AppSessions", "PushPolicy", "Devices"],
    "CommandSupport": ["Configuration"],
    "Trunkline": ["Configuration", "CommandSupport"],
    "Peers": ["SpeechScore"],
    "Lab": ["Peers", "PushSandbox", "SpeechScore", "AppCheck"],
    "Cluster": ["CallModel", "AppSessions", "PushPolicy", "Devices", "SIPDialogs"],
    "GatewayCore": ["AppSessions", "PushPolicy", "Devices", "SIPDialogs", "Trunking", "CallModel", "CallFlow", "Cluster"],
    "TrunklineCallDirectory": ["AppleStandIn"],
    "AppleStandIn": ["PhoneLog"],
    "TrunklineClient": ["ClientMachines", "PhoneLog"],
    "TrunklineCallKit": ["ClientMachines", "TrunklineClient", "AppleStandIn"],
    "AppServer": ["WebServer"],
    "EventJournal": ["LineFiles"],
    "Store": ["EventJournal", "LineFiles"],
    "OutgoingHTTP": ["EventJournal"],
  ]

  /// What is not ours, by folder or `folder/module` that may import it; `*` is everywhere.
  static let outside: [String: Set<String>] = [
    "Synchronization": ["*"],
    "Logging": ["Platform", "Runtime", "Trunkline", "Lab"],
    "GRDB": ["Runtime/Store"],
    "Yams": ["Trunkline/Configuration"],
    "ArgumentParser": ["Trunkline", "Lab"],
    // JSON only; the rest of the machines live without Foundation.
    "FoundationEssentials": [
      "Wire/AppProtocol", "Wire/JSONWebToken", "Calls/AppSessions", "Calls/CallFlow", "Calls/PushPolicy", "Platform", "Runtime",
      "Client", "Trunkline", "Lab",
    ],
    // In Wire and Calls only where FoundationEssentials is not there (Apple systems).
    "Foundation": [
      "Platform", "Runtime", "Trunkline", "Lab", "Client", "Wire/AppProtocol", "Wire/JSONWebToken", "Calls/AppSessions",
      "Calls/PushPolicy",
    ],
    // The C library: files, sockets, clocks, mathematics. Wire and Media use its mathematics only.
    "Glibc": ["Wire/RTP", "Media", "Platform", "Runtime", "Client", "Trunkline", "Lab"],
    "Darwin": ["Wire/RTP", "Media", "Platform", "Client", "Lab/SpeechScore"],
    // The engine's queue, and Apple's surface: delegates have dispatch queues.
    "Dispatch": ["Trunkline", "Lab", "Client"],
    "Observation": ["Client/TrunklineClient", "Lab"],
    "PushKit": ["Client"], "AVFAudio": ["Client"], "Intents": ["Client"],
    "AudioToolbox": ["Client/TrunklineClient"], "Network": ["Client/TrunklineClient"], "os": ["Client/TrunklineClient"],
    "Security": ["Client/TrunklineClient"],
    "CDemoSpeech": ["Lab/SpeechScore"],
    // Apple's own, where it is there; else AppleStandIn.
    "CallKit": ["Client"],
  ]

  /// Why `module` in `folder` must not import `name`; nil if it may, or if `name` is not ours.
  static func offence(module: String, folder: String, imports name: String, folders: [String: String]) -> String? {
    guard name != module, let other = folders[name] else { return nil }
    if name == "CSRTP" { return "\(module) imports CSRTP: the oracle is for Tests and Bench only" }
    if folder == "Client" || other == "Client" {
      let isSibling = folder == other && siblings[module]?.contains(name) == true
      let allowed =
        folder == "Client"
        ? isSibling || ["CLibraries", "Wire", "Media"].contains(other) : ["Trunkline", "Lab"].contains(folder)
      return allowed ? nil : "\(module) (\(folder)) imports \(name) (\(other)): Client sees CLibraries, Wire and Media only"
    }
    if folder == other {
      let allowed = siblings[module]?.contains(name) == true
      return allowed ? nil : "\(module) imports its sibling \(name): no row of ImportRule.siblings allows it"
    }
    guard let mine = order.firstIndex(of: folder), let theirs = order.firstIndex(of: other) else {
      return "\(module) (\(folder)) imports \(name) (\(other)): one of the folders is not in ImportRule.order"
    }
    if theirs > mine {
      return "\(module) (\(folder)) imports \(name) (\(other)): \(folder) is above \(other) and must not know it"
    }
    return nil
  }
}
