"""Reads and writes the registers of a unit under cocotb."""

import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from cocotbext.axi import AxiLiteBus, AxiLiteMaster

__all__ = ["RegisterDriver"]


class RegisterDriver:
    """A unit's ``s_axil`` port.

    Parameters
    ----------
    dut : handle
        The unit, or what surrounds it and has its ports.
    address_of : function of str
        Address of a register.
    """

    def __init__(self, dut, address_of):
        self.dut = dut
        self._address_of = address_of
        self.axil = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "s_axil"), dut.clk, dut.rst)
        for channels in (self.axil.write_if, self.axil.read_if):
            channels.log.setLevel("WARNING")

    async def write(self, name, value, *, good=True):
        """Write a register, which must be answered OKAY, or else, if not ``good``."""
        response = await self.axil.write(
            self._address_of(name), int(value).to_bytes(4, "little"))
        assert (response.resp == 0) == good, f"write of {name} answered {response.resp!r}"

    async def read(self, name):
        response = await self.axil.read(self._address_of(name), 4)
        assert response.resp == 0, f"read of {name} answered {response.resp!r}"
        return int.from_bytes(response.data, "little")

    async def write_address(self, name, value):
        """Write an address of two registers."""
        await self.write(name, value & 0xFFFFFFFF)
        await self.write(f"{name}_high", value >> 32)

    async def enter_pages(self, base, pages):
        """Enter pages into the block table from an entry on."""
        await self.write("table_index", base)
        for page in pages:
            await self.write("table_page", int(page))
