extension CacheSecret {
    /// The sealer of one generation.
    func sealer(of generation: GenerationIdentifier, key: CacheKey) -> BlockSealer {
        BlockSealer(secret: self.key, format: format, resource: key.hash, generation: generation)
    }
}

extension CacheSecrets {
    /// The sealer of a recorded generation; nil if its blocks can't be read here: no secret that is known made its seals, or
    /// they lie in another way.
    func sealer(of stored: GenerationRecord, key: CacheKey) -> BlockSealer? {
        secret(stored.secret, format: stored.format)?.sealer(of: stored.identifier, key: key)
    }
}
