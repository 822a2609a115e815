"""An AXI-Lite master for the tests of register blocks."""

OKAY, SLVERR = 0, 2


class Bus:
    """An AXI-Lite master that takes its time.

    Parameters
    ----------
    ctx : SimulatorContext
    dut : wiring.Component
        A unit with an AXI-Lite slave ``bus``.
    address_of : function of str
        Address of a register.
    rng : random.Random
        Of the pauses; without it there are none.
    """

    def __init__(self, ctx, dut, address_of, rng=None):
        self.ctx = ctx
        self.dut = dut
        self.address_of = address_of
        self.rng = rng

    async def pause(self):
        while self.rng and self.rng.random() < 0.5:
            await self.ctx.tick()

    async def _send(self, port, payload):
        await self.pause()
        self.ctx.set(port.payload, payload)
        self.ctx.set(port.valid, 1)
        while True:
            _, _, ready = await self.ctx.tick().sample(port.ready)
            if ready:
                break
        self.ctx.set(port.valid, 0)

    async def receive(self, port):
        """Returns the payload and the cycles until it came."""
        cycles = 0
        while not self.ctx.get(port.valid):
            await self.ctx.tick()
            cycles += 1
        held = self.ctx.get(port.payload)
        await self.pause()
        assert self.ctx.get(port.valid)
        assert self.ctx.get(port.payload) == held
        self.ctx.set(port.ready, 1)
        await self.ctx.tick()
        self.ctx.set(port.ready, 0)
        return held, cycles

    async def write_at(self, address, word, strobes=0xF, late=None):
        """Write; ``late`` names the channel that starts 3 cycles after the other."""
        ctx, bus = self.ctx, self.dut.bus
        await self.pause()
        ctx.set(bus.aw.payload, {"addr": address})
        ctx.set(bus.w.payload, {"data": word, "strb": strobes})
        for channel in (bus.aw, bus.w):
            ctx.set(channel.valid, 1)
        if late:
            ctx.set(getattr(bus, late).valid, 0)
            for _ in range(3):
                _, _, *ready = await ctx.tick().sample(bus.aw.ready, bus.w.ready)
                assert ready == [0, 0]
            ctx.set(getattr(bus, late).valid, 1)
        while True:
            _, _, address_ready, word_ready = await ctx.tick().sample(bus.aw.ready, bus.w.ready)
            assert address_ready == word_ready
            if word_ready:
                break
        for channel in (bus.aw, bus.w):
            ctx.set(channel.valid, 0)
        response, _ = await self.receive(bus.b)
        return response.resp.value

    async def read_at(self, address):
        await self._send(self.dut.bus.ar, {"addr": address})
        response, cycles = await self.receive(self.dut.bus.r)
        assert cycles == 1  # and one for the address itself
        return response.resp.value, response.data

    async def write(self, name, word):
        assert await self.write_at(self.address_of(name), word) == OKAY

    async def read(self, name):
        response, word = await self.read_at(self.address_of(name))
        assert response == OKAY
        return word
