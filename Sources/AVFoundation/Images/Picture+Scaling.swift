import Foundation

extension Picture {
    /// The picture made smaller, so that it fits in a box; as it is if it does.
    ///
    /// A side of the box that is 0, or no number above it, does not bound.
    func scaled(toFit box: CGSize) -> Picture {
        func ratio(_ bound: Double, _ side: Int) -> Double { bound >= 1 ? min(bound / Double(side), 1) : 1 }
        func side(_ bound: Double, _ side: Int, _ scale: Double) -> Int {
            let length = max((Double(side) * scale).rounded(), 1)
            return Int(bound >= 1 ? min(length, bound.rounded(.down)) : length)
        }
        let scale = min(ratio(box.width, width), ratio(box.height, height))
        guard scale < 1 else { return self }
        return averaged(width: side(box.width, width, scale), height: side(box.height, height, scale)) ?? self
    }

    /// Each pixel is the average of those that lie in its place.
    private func averaged(width newWidth: Int, height newHeight: Int) -> Picture? {
        let newBytesPerRow = newWidth * Self.bytesPerPixel
        var target = Data(count: newBytesPerRow * newHeight)
        // Where each column begins, and after the last one the end.
        let columns: [Int] = (0...newWidth).map { $0 * width / newWidth }
        target.withUnsafeMutableBytes { (target: UnsafeMutableRawBufferPointer) in
            data.withUnsafeBytes { (source: UnsafeRawBufferPointer) in
                for y in 0..<newHeight {
                    let rows = (y * height / newHeight)..<max((y + 1) * height / newHeight, y * height / newHeight + 1)
                    for x in 0..<newWidth {
                        var blue = 0
                        var green = 0
                        var red = 0
                        for row in rows {
                            var pixel = row * bytesPerRow + columns[x] * Self.bytesPerPixel
                            for _ in columns[x]..<columns[x + 1] {
                                blue += Int(source[pixel])
                                green += Int(source[pixel + 1])
                                red += Int(source[pixel + 2])
                                pixel += Self.bytesPerPixel
                            }
                        }
                        let count = max(rows.count * (columns[x + 1] - columns[x]), 1)
                        let place = y * newBytesPerRow + x * Self.bytesPerPixel
                        target[place] = UInt8(clamping: blue / count)
                        target[place + 1] = UInt8(clamping: green / count)
                        target[place + 2] = UInt8(clamping: red / count)
                    }
                }
            }
        }
        return Picture(width: newWidth, height: newHeight, bytesPerRow: newBytesPerRow, data: target)
    }
}
