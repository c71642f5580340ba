-- What do two nations sell to each other, by year?
select seller, buyer_nation, year, sum(net) as net
from (
    select sn.nation as seller,
           bn.nation as buyer_nation,
           extract(year from l.shipped_on) as year,
           l.price * (1 - l.discount) as net
    from lines l
    join suppliers s on s.supplier_id = l.supplier_id
    join nations sn on sn.nation_id = s.nation_id
    join purchases p on p.purchase_id = l.purchase_id
    join buyers b on b.buyer_id = p.buyer_id
    join nations bn on bn.nation_id = b.nation_id
    where l.shipped_on between date '2019-01-01' and date '2021-12-31'
      and ((sn.nation = 'Gorania' and bn.nation = 'Tarvos')
           or (sn.nation = 'Tarvos' and bn.nation = 'Gorania'))
) as exchanged
group by seller, buyer_nation, year
order by seller, buyer_nation, year;
