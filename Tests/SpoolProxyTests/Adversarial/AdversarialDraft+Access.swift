import Foundation
import SpoolTesting

/// The parts of a request that the access control checks: the host and the token.
extension AdversarialDraft {
    mutating func drawHost(_ random: inout SplitMix) {
        let good = [
            "localhost", "127.0.0.1", "127.0.0.1:\(target.port)", "LOCALHOST:1", "[::1]", "player.localhost",
            "localhost:",
        ]
        guard !isAbsolute else {
            fields.append(("Host", random.pick(good)))
            return
        }
        switch random.below(30) {
        case 0 where !isTame:
            if !isOld { refusals.insert(400) }
        case 1 where !isTame:
            fields += [("Host", "localhost"), ("Host", random.pick(good + ["evil.example"]))]
            refusals.insert(400)
        case 2, 3:
            fields.append(
                (
                    "Host",
                    random.pick([
                        "evil.example", "localhost.evil.example", "xlocalhost", "127.1", "2130706433",
                        "evil.example:80",
                    ])
                ))
            hostRefusals = [421]
        case 4:
            fields.append(
                (
                    "Host",
                    random.pick([
                        "", "a b", "user@localhost", "local\\host", "[::1", "localhost:x", "localhost:99999", "a,b",
                        "http://localhost",
                    ])
                ))
            hostRefusals = [400]
        default: fields.append((random.pick(["Host", "host", "HOST"]), random.pick(good)))
        }
    }

    mutating func drawToken(_ random: inout SplitMix) {
        guard let token = target.token else { return }
        guard path.hasPrefix("/") else {
            tokenRefusals = [401]
            return
        }
        switch random.below(10) {
        case 0..<6: path = "/~" + token + path
        case 6, 7:
            fields.append(
                (
                    random.pick(["Authorization", "authorization"]),
                    random.pick(["Bearer ", "bearer ", "BEARER  "]) + token
                ))
        case 8:
            path =
                random.pick([
                    "/~", "/~" + token.dropLast(), "/~" + token + "x", "/~" + token.uppercased() + "A", "/~%74oken",
                    "//~" + token, "/~~" + token, "",
                ]) + path
            tokenRefusals = [401]
        default:
            fields.append(
                (
                    "Authorization",
                    random.pick([
                        "Bearer", "Bearer ", "Bearer " + token + "x", "Basic " + token, token, "Bearer" + token,
                        "Bearer \(token),",
                    ])
                ))
            tokenRefusals = [401]
        }
    }
}
